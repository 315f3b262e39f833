import KeyValueModel
import KeyValueObserving

extension CoalescingRace {
  /// Commits a random transaction, which may be refused. Returns the events of the observers.
  mutating func commit(around focus: (object: Reference, key: String)? = nil) throws
    -> [ObserverID: ObserverEvent]
  {
    var operations = traffic.transaction(oracle.world)
    if let focus, Int.random(in: 0..<8, using: &traffic.random) > 0 {
      operations = [operation(on: focus)]
    }
    return try commit(operations)
  }

  /// Makes an operation on a collection, in most cases one that touches a single member.
  private mutating func operation(on focus: (object: Reference, key: String)) -> KeyValueModel.Operation {
    let (object, name) = focus
    guard case .toMany(let sort, let isOrdered, _, _) = oracle.world.key(object.text, name)?.kind,
      let member = member(sort), Int.random(in: 0..<6, using: &traffic.random) > 0
    else { return traffic.collectionOperation(object, path: [name], oracle.world) }
    let count = oracle.world.list(object.text, name).count
    let place = Int.random(in: 0...count, using: &traffic.random)
    switch Int.random(in: 0..<5, using: &traffic.random) {
    case 0 where isOrdered: return .insert(object, keyPath: name, [.value(member)], at: [place])
    case 0, 1: return .insert(object, keyPath: name, [.value(member)], at: nil)
    case 2: return .removeMembers(object, keyPath: name, [member])
    case _ where isOrdered: return .replace(object, keyPath: name, at: [place], [.value(member)])
    default: return .mutateSet(object, keyPath: name, [.union, .minus][place % 2], [.value(member)])
    }
  }

  private mutating func member(_ sort: OracleSchema.Sort) -> Value? {
    guard sort == .plain("integer") else { return traffic.member(sort, oracle.world) }
    return .integer(Int64.random(in: 1...24, using: &traffic.random))
  }

  @discardableResult
  private mutating func commit(_ operations: [KeyValueModel.Operation]) throws -> [ObserverID: ObserverEvent] {
    guard oracle.commit(operations) != nil else { return [:] }
    trail.append("\(operations)".replacing("KeyValueModel.", with: ""))
    let commit = try model.commit(Transaction(operations))
    var events: [ObserverID: ObserverEvent] = [:]
    index.notify(CollectionOfOne(commit), of: model.state) { events[$0.observer] = $0 }
    return events
  }

  /// Makes random key paths, about half of them without operator. The paths that lead to a collection and continue no
  /// further come first.
  mutating func paths(of object: String) -> [[String]] {
    var paths = (0..<Int.random(in: 1...5, using: &traffic.random)).map { _ in
      let path = schema.randomPath(OracleWorld.entity(object), upTo: 4, &traffic.random)
      return Bool.random(using: &traffic.random) ? path : Array(path.prefix { !$0.hasPrefix("@") })
    }
    // One of the long collections, directly or through another object.
    let ways = schema.keys(OracleWorld.entity(object)).map { [$0.name] } + [[]]
    let long = ways.map { $0 + [Bool.random(using: &traffic.random) ? "row" : "bag"] }
      .filter { collection(at: $0, of: object) != nil }
    if let path = long.randomElement(using: &traffic.random) { paths.insert(path, at: 0) }
    let isToMany = paths.map { collection(at: $0, of: object) != nil }
    return zip(paths, isToMany).filter(\.1).map(\.0) + zip(paths, isToMany).filter { !$0.1 }.map(\.0)
  }

  /// Returns the collection that a path leads to: its object and key.
  private func collection(at path: [String], of object: String) -> (object: Reference, key: String)? {
    var owner = object
    for name in path.dropLast() {
      guard let next = oracle.world.target(owner, name) else { return nil }
      owner = next
    }
    guard let key = path.last, oracle.world.key(owner, key)?.isToMany == true else { return nil }
    return Reference(owner).map { ($0, key) }
  }

  /// Returns the collection that the first path leads to, after filling it; in some cases nil. Most of the later
  /// operations change this collection.
  mutating func focus(_ paths: [[String]], of object: String) throws -> (object: Reference, key: String)? {
    guard let path = paths.first, let focus = collection(at: path, of: object),
      Int.random(in: 0..<4, using: &traffic.random) > 0
    else { return nil }
    var members: [Value] = []
    guard case .toMany(let sort, _, _, _) = oracle.world.key(focus.object.text, focus.key)?.kind else { return nil }
    for _ in 0..<Int.random(in: 0..<16, using: &traffic.random) {
      if let member = member(sort), !members.contains(member) { members.append(member) }
    }
    try commit([.set(focus.object, keyPath: focus.key, .array(members))])
    return focus
  }
}

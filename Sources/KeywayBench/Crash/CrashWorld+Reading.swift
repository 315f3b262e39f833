import KeyValueModel

/// What the server says a writer's objects are.
extension CrashWorld {
  /// What a reading gives that cannot be used.
  struct Unreadable: Error, CustomStringConvertible {
    let description: String
  }

  /// Reads all of a writer's objects; nobody writes them meanwhile.
  static func read(writer: Int, over connection: CrashConnection) throws -> CrashWorld {
    var world = CrashWorld(writer: writer)
    func get(_ path: String) throws -> Value {
      let answer = try connection.exchange(CrashRequest(path: path))
      guard answer.isSuccess else { throw Unreadable(description: "GET \(path): \(answer.status) \(answer.text)") }
      return answer.json
    }
    func object(_ reference: String) throws -> Value {
      let object = try get("/v1/objects/\(reference)")
      world.revisions[reference] = object.member("@revision").whole
      return object
    }
    for index in world.counters.indices {
      world.counters[index] = try object(world.counter(index)).member("value").whole ?? -1
    }
    let halves = try [object(world.leftHalf), object(world.rightHalf)]
    world.left = halves[0].member("value").whole ?? -1
    world.right = halves[1].member("value").whole ?? -1
    world.sequence = halves[0].member("sequence").whole ?? -1
    guard halves[1].member("sequence").whole == world.sequence, world.left + world.right == sum else {
      throw Unreadable(description: "half a transaction: \(halves[0].json) and \(halves[1].json)")
    }
    let total = try get("/v1/objects/\(world.group)/total")
    guard total.whole == world.total else {
      throw Unreadable(description: "\(world.group)/total is \(total.json), of counters \(world.counters)")
    }
    let items = try get("/v1/objects/Item?filter=writer==\(writer)&sort=number&limit=1000")
    for item in items.member("objects").elements ?? [] {
      let member = Member(reference: item.member("@ref").text, number: item.member("number").whole ?? -1)
      world.items.append(member)
      world.revisions[member.reference ?? ""] = item.member("@revision").whole
    }
    let entries = try object(world.list).member("entries").elements ?? []
    let numbers = try get("/v1/objects/\(world.list)/entries.number").elements ?? []
    guard entries.count == numbers.count else {
      throw Unreadable(description: "\(world.list) has \(entries.count) entries and \(numbers.count) numbers of them")
    }
    world.entries = zip(entries, numbers).map { Member(reference: $0.text, number: $1.whole ?? -1) }
    return world
  }

  /// Where this, which was read, is another than what is known; nil where it is the same. Names that are not known are
  /// taken as they come.
  func difference(from known: CrashWorld) -> String? {
    func same(_ read: [Member], _ known: [Member]) -> Bool {
      read.count == known.count
        && zip(read, known).allSatisfy {
          $0.number == $1.number && ($1.reference == nil || $0.reference == $1.reference)
        }
    }
    if counters != known.counters { return "counters are \(counters), not \(known.counters)" }
    if [left, right, sequence] != [known.left, known.right, known.sequence] {
      return "halves are \([left, right, sequence]), not \([known.left, known.right, known.sequence])"
    }
    if !same(items, known.items) { return "items are \(Self.text(items)), not \(Self.text(known.items))" }
    if !same(entries, known.entries) { return "entries are \(Self.text(entries)), not \(Self.text(known.entries))" }
    return nil
  }

  private static func text(_ members: [Member]) -> String {
    "[" + members.map { "\($0.number) \($0.reference ?? "?")" }.joined(separator: ", ") + "]"
  }
}

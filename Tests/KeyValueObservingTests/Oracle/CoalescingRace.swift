import KeyValueModel
import KeyValueObserving
import TestKit

/// Random traffic with three observers of the same key paths of an object. One receives its changes commit by commit,
/// two others coalesced at the end: one of these with old and new values, the other with random options.
struct CoalescingRace {
  /// The changes of one key path in one run of commits.
  struct Course {
    let path: [String]
    /// The value at the beginning.
    let before: Value
    /// The value of an observer that applies every change.
    var followed: Value
    var count = 0
    var hasSetting = false
  }

  private static let watchful = ObserverID(1)
  private static let away = ObserverID(2)
  private static let choosy = ObserverID(3)

  let schema: OracleSchema
  /// True if keys may change silently: then an observer cannot derive the values from the changes that it receives.
  let isManual: Bool
  var oracle: Oracle
  var traffic: RandomTraffic
  var model: Model
  var index = ObserverIndex()
  var trail: [String] = []
  /// The number of changes of each kind.
  var kinds: [String: Int] = [:]

  init(seed: UInt64, modes: [String]) throws {
    var random = SplitMix64(seed: seed)
    schema = Self.schema(modes, &random)
    isManual = modes.contains("manual")
    oracle = Oracle(schema: schema)
    traffic = RandomTraffic(schema: schema, random: random)
    model = Model(schema: try Schema(yaml: schema.yaml))
    for _ in 0..<20 { _ = try commit() }
  }

  /// Makes a random schema with collections that can grow longer than those of three objects.
  private static func schema(_ modes: [String], _ random: inout SplitMix64) -> OracleSchema {
    var entities = OracleSchema.random(modes: modes, &random).entities
    for isOrdered in [true, false] {
      let kind = OracleSchema.Key.Kind.toMany(.plain("integer"), isOrdered: isOrdered, inverse: nil, rule: "nullify")
      entities[0].ownKeys.append(OracleSchema.Key(name: isOrdered ? "row" : "bag", kind: kind))
    }
    var schema = OracleSchema(entities: entities)
    schema.complete()
    return schema
  }

  /// Runs commits while the observers are away, and checks the changes that they receive afterwards.
  mutating func run() throws {
    guard let name = oracle.world.objects.keys.sorted().randomElement(using: &traffic.random) else {
      _ = try commit()
      return
    }
    var paths = paths(of: name)
    let focus = try focus(paths, of: name)
    // Filling the collection may have deleted the object.
    guard oracle.world.objects[name] != nil else { return }
    var courses: [String: Course] = [:]
    for path in paths {
      let value = oracle.world.read(name, path: path)
      courses[path.joined(separator: ".")] = Course(path: path, before: value, followed: value)
    }
    let observed = try observations(courses.values.map(\.path), of: name, [.old, .new])
    index.add(observed, of: Self.watchful, cell: "c", in: model.state)
    // A path is sometimes observed twice.
    if let first = paths.first, Int.random(in: 0..<4, using: &traffic.random) == 0 { paths.append(first) }
    let options = ObservingOptions(rawValue: UInt8.random(in: 0..<16, using: &traffic.random))
    var absent: [ObserverID: (observations: [Observation], pending: MissedChanges)] = [:]
    for (observer, options) in [Self.away: [.old, .new], Self.choosy: options] {
      let observations = try observations(paths, of: name, options)
      index.add(observations, of: observer, cell: "c", in: model.state)
      absent[observer] = (observations, MissedChanges(observations, in: model.state))
    }
    trail.append("--- \(name) \(paths.map { $0.joined(separator: ".") }) \(options)")
    for _ in 0..<Int.random(in: 1...(Bool.random(using: &traffic.random) ? 4 : 40), using: &traffic.random) {
      let events = try commit(around: focus)
      for (observer, event) in events {
        absent[observer]?.pending.absorb(event.changes, gone: event.gone.first?.object)
      }
      for change in events[Self.watchful]?.changes ?? [] { try follow(change, &courses) }
      if oracle.world.objects[name] == nil { break }
    }
    if let (observations, pending) = absent[Self.away], let (same, other) = absent[Self.choosy] {
      try agree(pending.gone?.text == (oracle.world.objects[name] == nil ? name : nil), "gone differs")
      let told = pending.coalesced(observations, cell: "c", in: model.state)
      if pending.gone == nil { try compare(told, observations, courses) }
      try compare(told, other.coalesced(same, cell: "c", in: model.state))
    }
    for observer in [Self.watchful, Self.away, Self.choosy] { index.remove(observer) }
  }

  private func observations(
    _ paths: some Sequence<[String]>, of object: String, _ options: ObservingOptions
  ) throws -> [Observation] {
    guard let reference = Reference(object) else { return [] }
    let entity = try model.state.requireRecord(reference).entity
    return try paths.map { path in
      let keyPath = try model.schema.resolveObservable(path.joined(separator: "."), from: entity)
      return Observation(object: reference, keyPath: keyPath, options: options)
    }
  }

  /// Applies a change that the first observer receives.
  private func follow(_ change: Change, _ courses: inout [String: Course]) throws {
    let path = change.observation.keyPath.text
    guard var course = courses[path] else { throw Difference(text: "nobody observes \(line(change))") }
    course.count += 1
    if change.kind == .setting { course.hasSetting = true }
    if !isManual { course.followed = try Self.apply(change, to: course.followed) }
    courses[path] = course
  }

  static func apply(_ change: Change, to value: Value) throws -> Value {
    change.kind == .setting ? change.new ?? .null : .array(try Folding.apply(change, to: value))
  }
}

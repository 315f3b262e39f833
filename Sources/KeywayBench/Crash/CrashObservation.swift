import KeyValueModel

/// What one subscriber observes of one writer's objects.
enum CrashObservation: Hashable, Sendable, CaseIterable {
  /// A key path that counts up by one.
  case counter
  /// A whole object, by its display keys.
  case object
  /// A computed key over a to-many, and an aggregate.
  case aggregate
  /// An ordered to-many, with its count.
  case list
  /// A live query.
  case query
  /// A stream with cells: both halves, a counter, a live query.
  case cells

  private static let options = "options=initial,old,new"

  /// How it is asked for.
  func request(_ world: CrashWorld) -> CrashRequest {
    var request = CrashRequest(path: path(world), isStream: true)
    if self == .cells {
      request.method = "POST"
      request.body = cells(world)
    }
    return request
  }

  private func path(_ world: CrashWorld) -> String {
    switch self {
    case .counter: "/v1/objects/\(world.counter(0))/value?\(Self.options)"
    case .object: "/v1/objects/\(world.leftHalf)?\(Self.options)"
    case .aggregate: "/v1/objects/\(world.group)/total,counters.@sum.value?\(Self.options)"
    case .list: "/v1/objects/\(world.list)/entries,entries.@count?\(Self.options)"
    case .query: "/v1/objects/Item?filter=writer==\(world.writer)&sort=-number&keys=number"
    case .cells: "/v1/streams"
    }
  }

  private func cells(_ world: CrashWorld) -> String {
    let options = #""options":["initial","old","new"]"#
    return """
      {"cells":{"left":{"object":"\(world.leftHalf)",\(options)},"right":{"object":"\(world.rightHalf)",\(options)},\
      "counter":{"object":"\(world.counter(1))","keyPaths":["value"],\(options)},\
      "items":{"entity":"Item","filter":"writer == \(world.writer)","sort":"-number","keys":["number"]}}}
      """
  }

  /// What the observed key paths show of a state: `Counter/0-0 value`.
  func values(of world: CrashWorld) -> [String: Value] {
    switch self {
    case .counter: ["\(world.counter(0)) value": .integer(world.counters[0])]
    case .object: half(world.leftHalf, world.left, world)
    case .aggregate:
      [
        "\(world.group) total": .integer(world.total),
        "\(world.group) counters.@sum.value": .integer(world.total),
      ]
    case .list:
      [
        "\(world.list) entries": .array(world.entries.map { .string($0.reference ?? "") }),
        "\(world.list) entries.@count": .integer(Int64(world.entries.count)),
      ]
    case .query: [:]
    case .cells:
      half(world.leftHalf, world.left, world)
        .merging(half(world.rightHalf, world.right, world)) { first, _ in first }
        .merging(["\(world.counter(1)) value": .integer(world.counters[1])]) { first, _ in first }
    }
  }

  private func half(_ reference: String, _ value: Int64, _ world: CrashWorld) -> [String: Value] {
    ["\(reference) value": .integer(value), "\(reference) sequence": .integer(world.sequence)]
  }

  /// Whether items are shown.
  var hasItems: Bool { self == .query || self == .cells }

  /// Whether each new value of a key path is the old and one: then none can be missing.
  static func countsUp(_ name: String) -> Bool {
    !(name.hasPrefix("Half/") && name.hasSuffix(" value")) && !name.hasPrefix("List/")
  }
}

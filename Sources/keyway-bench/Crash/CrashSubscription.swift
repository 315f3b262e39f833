import KeyValueModel
import TestKit

/// What one subscriber observes of one writer's objects.
enum CrashSubscription: Hashable, Sendable, CaseIterable {
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

  /// The request that opens its stream.
  func request(_ objects: WriterObjects) -> WireRequest {
    self == .cells
      ? WireRequest("POST", path(objects), body: cells(objects)) : WireRequest("GET", path(objects))
  }

  private func path(_ objects: WriterObjects) -> String {
    switch self {
    case .counter: "/v1/objects/\(objects.counter(0))/value?\(Self.options)"
    case .object: "/v1/objects/\(objects.leftHalf)?\(Self.options)"
    case .aggregate: "/v1/objects/\(objects.group)/total,counters.@sum.value?\(Self.options)"
    case .list: "/v1/objects/\(objects.list)/entries,entries.@count?\(Self.options)"
    case .query: "/v1/objects/Item?filter=writer==\(objects.writer)&sort=-number&keys=number"
    case .cells: "/v1/streams"
    }
  }

  private func cells(_ objects: WriterObjects) -> String {
    let options = #""options":["initial","old","new"]"#
    return """
      {"cells":{"left":{"object":"\(objects.leftHalf)",\(options)},\
      "right":{"object":"\(objects.rightHalf)",\(options)},\
      "counter":{"object":"\(objects.counter(1))","keyPaths":["value"],\(options)},\
      "items":{"entity":"Item","filter":"writer == \(objects.writer)","sort":"-number","keys":["number"]}}}
      """
  }

  /// What the observed key paths show of a state: `Counter/0-0 value`.
  func values(of objects: WriterObjects) -> [String: Value] {
    switch self {
    case .counter: ["\(objects.counter(0)) value": .count(objects.counters[0])]
    case .object: half(objects.leftHalf, objects.left, objects)
    case .aggregate:
      [
        "\(objects.group) total": .count(objects.total),
        "\(objects.group) counters.@sum.value": .count(objects.total),
      ]
    case .list:
      [
        "\(objects.list) entries": .array(objects.entries.map { .string($0.reference ?? "") }),
        "\(objects.list) entries.@count": .count(objects.entries.count),
      ]
    case .query: [:]
    case .cells:
      half(objects.leftHalf, objects.left, objects)
        .merging(half(objects.rightHalf, objects.right, objects)) { first, _ in first }
        .merging(["\(objects.counter(1)) value": .count(objects.counters[1])]) { first, _ in first }
    }
  }

  private func half(_ reference: String, _ value: Int, _ objects: WriterObjects) -> [String: Value] {
    ["\(reference) value": .count(value), "\(reference) sequence": .count(objects.sequence)]
  }

  /// Whether items are shown.
  var hasItems: Bool { self == .query || self == .cells }

  /// Whether each new value of a key path is the old and one: then none can be missing.
  static func countsUp(_ name: String) -> Bool {
    !(name.hasPrefix("Half/") && name.hasSuffix(" value")) && !name.hasPrefix("List/")
  }
}

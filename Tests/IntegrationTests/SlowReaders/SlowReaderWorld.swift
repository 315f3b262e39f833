import Foundation
import KeyValueModel
import TestKit

/// A server with groups of items, and random commits on them.
///
/// `Group/1` and `Item/keep` always exist, and every stream observes something of them that `mark` sets, so that each
/// reader can tell when it has reached the present.
final class SlowReaderWorld {
  private static let schema = """
    entities:
      Group:
        keys:
          name: { type: string }
          pad: { type: string }
          items: { toMany: Item, ordered: true, inverse: group }
          tags: { toMany: string }
          total: { type: number, computed: items.@sum.n }
        display: [name, total, pad]
      Item:
        keys:
          name: { type: string }
          pad: { type: string }
          kind: { type: string }
          n: { type: number }
          group: { toOne: Group, inverse: items }
        display: [name, n, pad]
    """

  let server: ServerProcess
  let client: WireClient
  var random: SplitMix64
  private var items: [String] = []
  private var made = 0
  private let folder: URL

  init(seed: UInt64, settings: [String: String] = [:]) throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("slow-readers-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("schema.yaml")
    try Data(Self.schema.utf8).write(to: file)
    let pending = ["streams.pendingBytes": "8192"]
    server = try ServerProcess("--schema", file.path, "--store", "memory", settings: pending.merging(settings) { $1 })
    client = server.client
    random = SplitMix64(seed: seed)
    for group in 1...3 { try put("Group/\(group)", #"{"name":"g","pad":"p"}"#) }
    try put("Item/keep", #"{"name":"keep","kind":"a","n":-1000,"pad":"p"}"#)
    for _ in 0..<8 { try commit([create()]) }
  }

  deinit {
    // The threads that read its streams retain the server's process, so it is ended here.
    server.child.send(SIGTERM)
    try? FileManager.default.removeItem(at: folder)
  }

  func put(_ path: String, _ json: String) throws { try client.must("PUT", "/v1/objects/\(path)", body: json) }

  /// Makes a commit that sends an event to every stream. Returns its revision.
  func mark() throws -> Int {
    made += 1
    return try commit(["Group/1", "Item/keep"].map { set($0, "pad", .string("mark \(made)")) })
  }

  /// Makes a commit that exceeds the buffer of a slow reader.
  func flood() throws {
    made += 1
    let text = Value.string("\(made) " + String(repeating: "x", count: 60_000))
    _ = try commit(["Group/1", "Item/keep"].map { set($0, "pad", text) })
  }

  /// Makes one random commit of a few operations.
  func commit() throws {
    var operations: [Value] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) { operations.append(operation()) }
    _ = try commit(operations)
  }

  @discardableResult
  private func commit(_ operations: [Value]) throws -> Int {
    let body = Value.object(["operations": .array(operations)]).json
    return try client.must("POST", "/v1/transactions", body: body).json["revision"].whole ?? -1
  }

  private func operation() -> Value {
    guard let item = items.randomElement(using: &random) else { return create() }
    switch Int.random(in: 0..<14, using: &random) {
    case 0, 1: return create()
    case 2 where items.count > 5:
      items.removeAll { $0 == item }
      return .object(["op": .string("delete"), "object": .string(item)])
    case 3...5: return set(item, "n", .integer(Int64.random(in: 0..<20, using: &random)))
    case 6: return set(item, "name", .string("name \(Int.random(in: 0..<5, using: &random))"))
    case 7: return set(item, "kind", kind())
    case 8, 9: return set(item, "group", Bool.random(using: &random) ? .null : .string("Group/1"))
    case 10:
      // A whole assignment, in another order.
      return set("Group/1", "items", .array(items.shuffled(using: &random).prefix(4).map(Value.string)))
    case 11:
      let tags = ["x", "y", "z"].filter { _ in Bool.random(using: &random) }
      return set("Group/1", "tags", .array(tags.map(Value.string)))
    default: return set("Group/1", "name", .string("name \(Int.random(in: 0..<5, using: &random))"))
    }
  }

  private func create() -> Value {
    made += 1
    items.append("Item/\(made)")
    let value: JSONObject = [
      "name": .string("item \(made)"), "kind": kind(), "n": .integer(Int64.random(in: 0..<20, using: &random)),
      "pad": .string(""), "group": Bool.random(using: &random) ? .null : .string("Group/1"),
    ]
    return .object(["op": .string("create"), "object": .string("Item/\(made)"), "value": .object(value)])
  }

  private func kind() -> Value { .string(["a", "b", "c"].randomElement(using: &random) ?? "a") }

  private func set(_ object: String, _ keyPath: String, _ value: Value) -> Value {
    .object(["op": .string("set"), "object": .string(object), "keyPath": .string(keyPath), "value": value])
  }

  /// An existing item; `Item/keep` if there is no other.
  var someItem: String { items.randomElement(using: &random) ?? "Item/keep" }
}

import KeyValueModel
import KeywayClient
import TestKit
import Testing

/// A stream with cells, and the values that they show to a client that applies its events.
final class CellScreen {
  let server: TestServer
  /// The size of the receive buffer: small for a reader that makes the server wait, nil for the default.
  private let receiveBufferBytes: Int32?
  private(set) var stream: WireStream
  private(set) var path: String
  /// The lists of query cells.
  private(set) var lists: [String: LiveList] = [:]
  /// The values of object cells, by cell and key path.
  private(set) var values: [String: [String: Value]] = [:]
  private(set) var gone: Set<String> = []
  /// The number of applied events of each type.
  private(set) var tally: [String: Int] = [:]
  private var marks = 0
  private var lastRevision = 0

  /// Opens a stream, and reads only its `open`.
  init(
    _ server: TestServer, cells: String = "{}", since cursor: String? = nil, receiveBufferBytes: Int32? = nil
  ) throws {
    self.server = server
    self.receiveBufferBytes = receiveBufferBytes
    (stream, path) = try Self.open(server, cells, cursor, receiveBufferBytes)
  }

  private static func open(
    _ server: TestServer, _ cells: String, _ cursor: String?, _ receiveBufferBytes: Int32?
  ) throws -> (stream: WireStream, path: String) {
    var headers = ["Content-Type": "application/json"]
    headers["Last-Event-ID"] = cursor
    let stream = try server.client.stream(
      "/v1/streams", headers, method: "POST", body: "{\"cells\":\(cells)}", receiveBufferBytes: receiveBufferBytes)
    return (stream, "/v1/streams/\(try #require(try stream.next().json["stream"].text))")
  }

  /// Loses the connection with all unread events, and reconnects with these cells and the last id that was read.
  func reconnect(cells: String) throws {
    let cursor = stream.lastID
    stream.socket.reset()
    (stream, path) = try Self.open(server, cells, cursor, receiveBufferBytes)
  }

  /// Binds a cell, or changes a part of its binding.
  @discardableResult
  func bind(_ cell: String, _ body: String, _ method: String = "PUT") throws -> Value {
    try server.client.must(method, "\(path)/cells/\(cell)", body: body).json
  }

  @discardableResult
  func patch(_ cell: String, _ body: String) throws -> Value { try bind(cell, body, "PATCH") }

  func cell(_ name: String) throws -> Value { try server.client.json("\(path)/cells/\(name)") }

  /// Reads and applies all events up to now: those before the event of a mark cell that it binds. Then the cells show
  /// the present values.
  @discardableResult
  func told() throws -> [WireEvent] {
    marks += 1
    try bind("mark", #"{"object":"\#(markedObject)","options":["initial"],"context":"\#(marks)"}"#)
    let mark = "\(marks)"
    var isMarked = false
    // A slow reader may get the mark in the middle of a catch-up, whose end has an id.
    let events = try stream.events { event in
      isMarked = isMarked || event.changes.contains { $0["cell"].text == "mark" && $0["context"].text == mark }
      return isMarked && event.id != nil
    }
    try server.client.must("DELETE", "\(path)/cells/mark")
    for event in events { try take(event) }
    return events.filter { event in event.changes.isEmpty || event.changes.contains { $0["cell"].text != "mark" } }
  }

  /// The object that mark cells are bound to.
  var markedObject = "Department/1"

  /// Reads the next event and applies it.
  func next() throws -> WireEvent {
    let event = try stream.next()
    try take(event)
    return event
  }

  /// Returns the value after a change, given the one before.
  private static func fold(_ change: Value, into value: Value) -> Value {
    let indexes = change["indexes"].items.compactMap(\.whole)
    var items = value.items
    switch change["kind"].text {
    case "insertion": for (index, new) in zip(indexes, change["new"].items) { items.insert(new, at: index) }
    case "removal": for index in indexes.reversed() { items.remove(at: index) }
    case "replacement": for (index, new) in zip(indexes, change["new"].items) { items[index] = new }
    default: return change["new"]
    }
    return .array(items)
  }

  /// Forgets the contents of a cell.
  private func forget(_ cell: String) {
    lists[cell] = nil
    values[cell] = nil
    gone.remove(cell)
  }

  private func take(_ event: WireEvent) throws {
    let revision = try #require(event.json["revision"].whole)
    #expect(revision >= lastRevision, "\(event.text)")
    lastRevision = revision
    tally[event.name ?? "", default: 0] += 1
    switch event.name {
    case "results", "content":
      let cell = try #require(event.json["cell"].text)
      try lists[cell, default: LiveList()].apply(event)
    case "change":
      for change in event.changes {
        let cell = try #require(change["cell"].text)
        let keyPath = change["keyPath"].text ?? ""
        values[cell, default: [:]][keyPath] = Self.fold(change, into: values[cell]?[keyPath] ?? .null)
      }
    case "gone":
      let cell = try #require(event.json["cell"].text)
      forget(cell)
      gone.insert(cell)
    default: break
    }
  }
}

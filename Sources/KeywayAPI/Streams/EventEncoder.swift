import HTTPServer
import KeyValueModel
import KeyValueObserving

/// Writes the events of streams: blocks of the text/event-stream format (WHATWG HTML §9.2.6) with JSON data in one
/// line.
struct EventEncoder: Sendable {
  let epoch: String

  /// What follows `retry:` where a stream begins without an event: the line that ends the block.
  static let emptyBlock: [UInt8] = [UInt8(ascii: "\n")]

  /// One block. `id` is nil where the client is not to remember it.
  func append(
    _ event: StaticString, id: Revision?, to bytes: inout [UInt8], data: (inout [UInt8]) -> Void
  ) {
    if let id {
      bytes.append(contentsOf: "id: \(epoch)-\(id)\n".utf8)
    }
    bytes.append(contentsOf: "event: ".utf8)
    event.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: "\ndata: ".utf8)
    data(&bytes)
    bytes.append(contentsOf: "\n\n".utf8)
  }

  /// A `change` event; `isInitial` for the state at subscription.
  func appendChange(
    _ changes: [Change], revision: Revision, writer: String? = nil, isInitial: Bool = false, hasID: Bool = true,
    to bytes: inout [UInt8]
  ) {
    append("change", id: hasID ? revision : nil, to: &bytes) { bytes in
      appendHead(revision, writer, &bytes)
      if isInitial { bytes.append(contentsOf: ",\"initial\":true".utf8) }
      bytes.append(contentsOf: ",\"changes\":[".utf8)
      for (index, change) in changes.enumerated() {
        if index > 0 { bytes.append(UInt8(ascii: ",")) }
        append(change, to: &bytes)
      }
      bytes.append(contentsOf: "]}".utf8)
    }
  }

  /// A `gone` event.
  func appendGone(
    _ gone: ObserverEvent.Gone, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to bytes: inout [UInt8]
  ) {
    append("gone", id: hasID ? revision : nil, to: &bytes) { bytes in
      appendHead(revision, writer, &bytes)
      if let cell = gone.cell {
        bytes.append(contentsOf: ",\"cell\":".utf8)
        bytes.appendJSONString(cell)
      }
      bytes.append(contentsOf: ",\"object\":\"\(gone.object.text)\"}".utf8)
    }
  }

  /// What one revision delivers, to be posted.
  func bytes(of event: StreamEvent) -> EventBytes {
    var bytes: [UInt8] = []
    append(event, to: &bytes)
    return EventBytes(bytes, position: StreamPosition.commit(event.revision).rawValue)
  }

  /// What one revision delivers: changes, what became of queries, and then the objects that are gone. Only the last
  /// block has an id, so that no half of it can be resumed from.
  func append(_ event: StreamEvent, to bytes: inout [UInt8]) {
    if !event.changes.isEmpty {
      let isLast = event.queries.isEmpty && event.gone.isEmpty
      appendChange(event.changes, revision: event.revision, writer: event.writer, hasID: isLast, to: &bytes)
    }
    for (index, notification) in event.queries.enumerated() {
      let isLast = event.gone.isEmpty && index == event.queries.count - 1
      append(notification, revision: event.revision, writer: event.writer, hasID: isLast, to: &bytes)
    }
    for (index, gone) in event.gone.enumerated() {
      appendGone(
        gone, revision: event.revision, writer: event.writer, hasID: index == event.gone.count - 1, to: &bytes)
    }
  }

  /// A `reset` event: the cursor cannot be resumed; the present state follows.
  func appendReset(_ reason: Resumption.Reset, revision: Revision, to bytes: inout [UInt8]) {
    append("reset", id: nil, to: &bytes) { bytes in
      bytes.append(contentsOf: "{\"reason\":\"\(reason.rawValue)\",\"revision\":\(revision)}".utf8)
    }
  }

  /// An `open` event: the name of a stream with cells.
  func appendOpen(_ name: String, revision: Revision, heartbeatSeconds: Int, to bytes: inout [UInt8]) {
    append("open", id: nil, to: &bytes) { bytes in
      bytes.append(
        contentsOf: "{\"stream\":\"\(name)\",\"revision\":\(revision),\"heartbeat\":\(heartbeatSeconds)}".utf8)
    }
  }

  /// A `heartbeat` event: nothing happened, and the cursor is this revision's.
  func appendHeartbeat(at revision: Revision, to bytes: inout [UInt8]) {
    append("heartbeat", id: revision, to: &bytes) { bytes in
      bytes.append(contentsOf: "{\"revision\":\(revision)}".utf8)
    }
  }

  /// A `heartbeat` event, to be posted.
  func heartbeat(at revision: Revision) -> EventBytes {
    var bytes: [UInt8] = []
    appendHeartbeat(at: revision, to: &bytes)
    return EventBytes(bytes)
  }

  /// A `bye` event, to be posted.
  func closingEvent(_ reason: ClosingReason) -> EventBytes {
    var bytes: [UInt8] = []
    append("bye", id: nil, to: &bytes) { bytes in
      bytes.append(contentsOf: "{\"reason\":\"\(reason.rawValue)\"}".utf8)
    }
    return EventBytes(bytes)
  }

  func appendHead(_ revision: Revision, _ writer: String?, _ bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    if let writer {
      bytes.append(contentsOf: ",\"writer\":".utf8)
      bytes.appendJSONString(writer)
    }
  }

  private func append(_ change: Change, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "{"))
    if let cell = change.cell {
      bytes.append(contentsOf: "\"cell\":".utf8)
      bytes.appendJSONString(cell)
      bytes.append(UInt8(ascii: ","))
    }
    let observation = change.observation
    bytes.append(contentsOf: "\"object\":\"\(observation.object.text)\",\"keyPath\":".utf8)
    bytes.appendJSONString(observation.keyPath.text)
    bytes.append(contentsOf: ",\"kind\":\"\(change.kind.rawValue)\"".utf8)
    if change.isPrior { bytes.append(contentsOf: ",\"prior\":true".utf8) }
    if let indexes = change.indexes {
      append(.array(indexes.map { .integer(Int64($0)) }), named: ",\"indexes\":", to: &bytes)
    }
    append(change.old, named: ",\"old\":", to: &bytes)
    append(change.new, named: ",\"new\":", to: &bytes)
    if let context = observation.context {
      bytes.append(contentsOf: ",\"context\":".utf8)
      bytes.appendJSONString(context)
    }
    if let coalesced = change.coalesced { bytes.append(contentsOf: ",\"coalesced\":\(coalesced)".utf8) }
    bytes.append(UInt8(ascii: "}"))
  }

  private func append(_ value: Value?, named name: StaticString, to bytes: inout [UInt8]) {
    guard let value else { return }
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    value.appendJSON(to: &bytes)
  }
}

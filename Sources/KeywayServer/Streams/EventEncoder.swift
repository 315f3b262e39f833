import HTTPServer
import KeyValueModel
import KeyValueObserving

/// Writes the events of streams: blocks of the text/event-stream format (WHATWG HTML §9.2.6) with JSON data in one
/// line.
struct EventEncoder: Sendable {
  let epoch: String
  /// The most bytes of one event, the changes of one commit together. `streams.eventBytes`.
  let eventBytes: Int
  /// What long values are as JSON, for all events of a server.
  private let longTexts = LongTexts()

  init(epoch: String, eventBytes: Int = StreamLimits().eventBytes) {
    self.epoch = epoch
    self.eventBytes = eventBytes
  }

  /// What follows `retry:` where a stream begins without an event: the line that ends the block.
  static let emptyBlock: [UInt8] = [UInt8(ascii: "\n")]

  /// A text of no events yet, of at most `limit` bytes, or as many as one event may have.
  func text(limit: Int? = nil) -> EventText { EventText(limit: limit ?? eventBytes, longTexts) }

  /// One block. `id` is nil where the client is not to remember it.
  func append(
    _ event: StaticString, id: Revision?, to text: inout EventText, data: (inout EventText) -> Void
  ) {
    text.write { bytes in
      if let id {
        bytes.append(contentsOf: "id: \(epoch)-\(id)\n".utf8)
      }
      bytes.append(contentsOf: "event: ".utf8)
      event.withUTF8Buffer { bytes.append(contentsOf: $0) }
      bytes.append(contentsOf: "\ndata: ".utf8)
    }
    data(&text)
    text.append("\n\n".utf8)
  }

  /// A `change` event; `isInitial` for the state at subscription. Of `changes` no more is asked for once the text is
  /// too long.
  func appendChange(
    _ changes: some Sequence<Change>, revision: Revision, writer: String? = nil, isInitial: Bool = false,
    hasID: Bool = true, to text: inout EventText
  ) {
    append("change", id: hasID ? revision : nil, to: &text) { text in
      text.write { bytes in
        appendHead(revision, writer, &bytes)
        if isInitial { bytes.append(contentsOf: ",\"initial\":true".utf8) }
        bytes.append(contentsOf: ",\"changes\":[".utf8)
      }
      var isFirst = true
      for change in changes {
        guard !text.isTooLong else { return }
        append(change, isFirst: isFirst, to: &text)
        isFirst = false
      }
      text.append("]}".utf8)
    }
  }

  /// A `gone` event.
  func appendGone(
    _ gone: ObserverEvent.Gone, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to text: inout EventText
  ) {
    append("gone", id: hasID ? revision : nil, to: &text) { text in
      text.write { bytes in
        appendHead(revision, writer, &bytes)
        appendText(gone.cell, named: ",\"cell\":", to: &bytes)
        bytes.append(contentsOf: ",\"object\":\"\(gone.object.text)\"".utf8)
        appendText(gone.context, named: ",\"context\":", to: &bytes)
        bytes.append(UInt8(ascii: "}"))
      }
    }
  }

  /// What one revision delivers; too long where that is more than an event may have.
  func text(of event: StreamEvent) -> EventText {
    var text = text()
    append(event, to: &text)
    return text
  }

  /// The same, to be posted; nil where it is too long.
  func bytes(of event: StreamEvent) -> EventBytes? { text(of: event).event(at: .commit(event.revision)) }

  /// What one revision delivers: changes, what became of queries, and then the objects that are gone. Only the last
  /// block has an id, so that no half of it can be resumed from.
  func append(_ event: StreamEvent, to text: inout EventText) {
    if !event.changes.isEmpty {
      let isLast = event.queries.isEmpty && event.gone.isEmpty
      appendChange(event.changes, revision: event.revision, writer: event.writer, hasID: isLast, to: &text)
    }
    for (index, notification) in event.queries.enumerated() {
      let isLast = event.gone.isEmpty && index == event.queries.count - 1
      append(notification, revision: event.revision, writer: event.writer, hasID: isLast, to: &text)
    }
    for (index, gone) in event.gone.enumerated() {
      appendGone(
        gone, revision: event.revision, writer: event.writer, hasID: index == event.gone.count - 1, to: &text)
    }
  }

  /// A `reset` event: the cursor cannot be resumed; the present state follows.
  func appendReset(_ reason: Resumption.Reset, revision: Revision, to text: inout EventText) {
    append("reset", id: nil, to: &text) { text in
      text.append("{\"reason\":\"\(reason.rawValue)\",\"revision\":\(revision)}".utf8)
    }
  }

  /// An `open` event: the name of a stream with cells, and where it is resumed.
  func appendOpen(_ name: String, revision: Revision, heartbeatSeconds: Int, to text: inout EventText) {
    append("open", id: nil, to: &text) { text in
      text.append("{\"stream\":\"\(name)\",\"revision\":\(revision),\"heartbeat\":\(heartbeatSeconds)".utf8)
      text.append(",\"url\":\"/v1/streams/\(name)\"}".utf8)
    }
  }

  /// A `heartbeat` event: nothing happened, and the cursor is this revision's.
  func appendHeartbeat(at revision: Revision, to text: inout EventText) {
    append("heartbeat", id: revision, to: &text) { $0.append("{\"revision\":\(revision)}".utf8) }
  }

  /// A `heartbeat` event, to be posted.
  func heartbeat(at revision: Revision) -> EventBytes {
    posted { appendHeartbeat(at: revision, to: &$0) }
  }

  /// A `bye` event, to be posted.
  func closingEvent(_ reason: ClosingReason) -> EventBytes {
    posted { text in
      append("bye", id: nil, to: &text) { $0.append("{\"reason\":\"\(reason.rawValue)\"}".utf8) }
    }
  }

  /// Events that are short by themselves, to be posted at a position.
  func posted(at position: StreamPosition? = nil, _ append: (inout EventText) -> Void) -> EventBytes {
    var text = text(limit: .max)
    append(&text)
    return text.event(at: position) ?? EventBytes([])
  }

  func appendHead(_ revision: Revision, _ writer: String?, _ bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    appendText(writer, named: ",\"writer\":", to: &bytes)
  }

  private func append(_ change: Change, isFirst: Bool, to text: inout EventText) {
    let observation = change.observation
    text.write { bytes in
      bytes.append(contentsOf: isFirst ? "{".utf8 : ",{".utf8)
      if let cell = change.cell {
        bytes.append(contentsOf: "\"cell\":".utf8)
        bytes.appendJSONString(cell)
        bytes.append(UInt8(ascii: ","))
      }
      bytes.append(contentsOf: "\"object\":\"\(observation.object.text)\",\"keyPath\":".utf8)
      bytes.appendJSONString(observation.keyPath.text)
      bytes.append(contentsOf: ",\"kind\":\"\(change.kind.rawValue)\"".utf8)
      if change.isPrior { bytes.append(contentsOf: ",\"prior\":true".utf8) }
    }
    if let indexes = change.indexes {
      append(.array(indexes.map { .integer(Int64($0)) }), named: ",\"indexes\":", to: &text)
    }
    append(change.old, named: ",\"old\":", to: &text)
    append(change.new, named: ",\"new\":", to: &text)
    text.write { bytes in
      appendText(observation.context, named: ",\"context\":", to: &bytes)
      if let coalesced = change.coalesced { bytes.append(contentsOf: ",\"coalesced\":\(coalesced)".utf8) }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private func append(_ value: Value?, named name: StaticString, to text: inout EventText) {
    guard let value else { return }
    text.write { bytes in name.withUTF8Buffer { bytes.append(contentsOf: $0) } }
    text.append(value)
  }
}

import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// Encodes the events of streams: blocks of the text/event-stream format (WHATWG HTML §9.2.6) with JSON data in one
/// line.
struct EventEncoder: Sendable {
  let epoch: String
  /// The maximum number of bytes of one event, and of all changes of one commit together. `streams.eventBytes`.
  let eventBytes: Int
  /// The JSON of long values, shared by all events of a server.
  private let longTexts = LongTexts()

  init(epoch: String, eventBytes: Int = StreamLimits().eventBytes) {
    self.epoch = epoch
    self.eventBytes = eventBytes
  }

  /// The end of the block with `retry:` if a stream begins without an event: an empty line.
  static let emptyBlock: [UInt8] = [UInt8(ascii: "\n")]

  /// Returns an empty text of at most `limit` bytes, by default as many as one event may have.
  func text(limit: Int? = nil) -> EventBuffer { EventBuffer(limit: limit ?? eventBytes, longTexts) }

  /// Appends one block. `id` is nil if the client must not remember it.
  func append(
    _ event: StaticString, id: Revision?, to text: inout EventBuffer, data: (inout EventBuffer) -> Void
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

  /// Appends a `change` event. `isInitial` marks the state at subscription. The sequence `changes` is not read further
  /// once the text is too long.
  func appendChange(
    _ changes: some Sequence<Change>, revision: Revision, writer: String? = nil, isInitial: Bool = false,
    hasID: Bool = true, to text: inout EventBuffer
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

  /// Appends a `gone` event.
  private func appendGone(
    _ gone: ObserverEvent.Gone, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to text: inout EventBuffer
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

  /// Returns the encoded events of one revision. The text is too long if they exceed the limit of an event.
  func text(of event: StreamEvent) -> EventBuffer {
    var text = text()
    append(event, to: &text)
    return text
  }

  /// Returns the encoded events of one revision to post, or nil if they are too long.
  func bytes(of event: StreamEvent) -> EventBytes? { text(of: event).event(at: .commit(event.revision)) }

  /// Appends the events of one revision: changes, notifications of live queries, and then the objects that are gone.
  /// Only the last block has an id, so that no client resumes in the middle of them.
  func append(_ event: StreamEvent, to text: inout EventBuffer) {
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

  /// Appends a `reset` event: the stream cannot resume from the cursor. The present state follows.
  func appendReset(_ reason: Resumption.Reset, revision: Revision, to text: inout EventBuffer) {
    append("reset", id: nil, to: &text) { text in
      text.append("{\"reason\":\"\(reason.rawValue)\",\"revision\":\(revision)}".utf8)
    }
  }

  /// Appends an `open` event: the name of a stream with cells, and the URL to resume it.
  func appendOpen(_ name: String, revision: Revision, heartbeatSeconds: Int, to text: inout EventBuffer) {
    append("open", id: nil, to: &text) { text in
      text.append("{\"stream\":\"\(name)\",\"revision\":\(revision),\"heartbeat\":\(heartbeatSeconds)".utf8)
      text.append(",\"url\":\"/v1/streams/\(name)\"}".utf8)
    }
  }

  /// Appends a `heartbeat` event: nothing happened, and the cursor is that of this revision.
  func appendHeartbeat(at revision: Revision, to text: inout EventBuffer) {
    append("heartbeat", id: revision, to: &text) { $0.append("{\"revision\":\(revision)}".utf8) }
  }

  /// Returns a `heartbeat` event to post.
  func heartbeat(at revision: Revision) -> EventBytes {
    posted { appendHeartbeat(at: revision, to: &$0) }
  }

  /// Returns a `bye` event to post.
  func closingEvent(_ reason: ClosingReason) -> EventBytes {
    posted { text in
      append("bye", id: nil, to: &text) { $0.append("{\"reason\":\"\(reason.rawValue)\"}".utf8) }
    }
  }

  /// Returns short events, without a limit, to post at a position.
  func posted(at position: StreamPosition? = nil, _ append: (inout EventBuffer) -> Void) -> EventBytes {
    var text = text(limit: .max)
    append(&text)
    return text.event(at: position) ?? EventBytes([])
  }

  private func appendHead(_ revision: Revision, _ writer: String?, _ bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"revision\":".utf8)
    bytes.appendDecimal(revision)
    appendText(writer, named: ",\"writer\":", to: &bytes)
  }

  private func append(_ change: Change, isFirst: Bool, to text: inout EventBuffer) {
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

  private func append(_ value: Value?, named name: StaticString, to text: inout EventBuffer) {
    guard let value else { return }
    text.write { bytes in name.withUTF8Buffer { bytes.append(contentsOf: $0) } }
    text.append(value)
  }

  // MARK: Live queries

  // Live queries have the events `results` and `content` (the specification, section 5).

  /// Returns the present rows, as the first event of a stream.
  func initialEvent(_ result: QueryResult, _ context: EchoedText?, _ snapshot: Snapshot) -> EventBuffer {
    var text = text()
    let notification = QueryNotification(
      cell: nil, context: context?.text, body: .results(result, snapshot.state, isInitial: true))
    append(notification, revision: snapshot.revision, to: &text)
    return text
  }

  /// Appends a `results` or `content` event.
  func append(
    _ notification: QueryNotification, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to text: inout EventBuffer
  ) {
    let isContent = if case .content = notification.body { true } else { false }
    append(isContent ? "content" : "results", id: hasID ? revision : nil, to: &text) { text in
      text.write { bytes in
        appendHead(revision, writer, &bytes)
        if case .results(_, _, isInitial: true) = notification.body {
          bytes.append(contentsOf: ",\"initial\":true".utf8)
        }
        appendText(notification.cell, named: ",\"cell\":", to: &bytes)
        appendText(notification.context, named: ",\"context\":", to: &bytes)
        if let coalesced = notification.coalesced { bytes.append(contentsOf: ",\"coalesced\":\(coalesced)".utf8) }
      }
      switch notification.body {
      case .results(let result, let state, _): append(result, in: state, to: &text)
      case .content(let content): text.append(content.text)
      }
      text.append("}".utf8)
    }
  }

  private func append(_ result: QueryResult, in state: any ObjectReader, to text: inout EventBuffer) {
    text.write { bytes in
      QueryCounts(count: result.count, total: result.rowCount, failed: result.failed).append(to: &bytes)
      bytes.append(contentsOf: ",\"objects\":[".utf8)
    }
    var isFirst = true
    for row in result.window {
      guard !text.isTooLong else { return }
      if !isFirst { text.append(",".utf8) }
      isFirst = false
      append(row, of: result.query, revision: state.record(row.reference)?.revision ?? 0, to: &text)
    }
    text.append("]".utf8)
    text.write { result.appendSummary(to: &$0) }
  }

  /// Returns the changes of rows in `content`, encoded once for all that receive it.
  func encoded(_ content: QueryContent) -> EncodedContent {
    var text = text()
    append(content, to: &text)
    return EncodedContent(content: content, text: text)
  }

  private func append(_ content: QueryContent, to text: inout EventBuffer) {
    text.write { bytes in
      QueryCounts(count: content.count, total: content.total, failed: content.failed).append(to: &bytes)
      bytes.append(contentsOf: ",\"changes\":[".utf8)
    }
    for (index, change) in content.changes.enumerated() {
      guard !text.isTooLong else { return }
      if index > 0 { text.append(",".utf8) }
      append(change, of: content.query, to: &text)
    }
    text.append("]".utf8)
    append(content.sectionChanges, to: &text)
    text.write { bytes in
      content.query.appendSummary(sections: content.sections, aggregates: content.aggregates, to: &bytes)
    }
  }

  private func append(_ sectionChanges: [SectionChange], to text: inout EventBuffer) {
    guard !sectionChanges.isEmpty else { return }
    text.append(",\"sectionChanges\":[".utf8)
    for (index, change) in sectionChanges.enumerated() {
      if index > 0 { text.append(",".utf8) }
      let (type, name, place) =
        switch change {
        case .insert(let name, let newIndex): ("insert", name, "\"newIndex\":\(newIndex)")
        case .delete(let name, let index): ("delete", name, "\"index\":\(index)")
        }
      text.append("{\"type\":\"\(type)\",\"name\":".utf8)
      text.append(name)
      text.append(",\(place)}".utf8)
    }
    text.append("]".utf8)
  }

  private func append(_ change: QueryChange, of query: Query, to text: inout EventBuffer) {
    text.write { bytes in
      bytes.append(contentsOf: "{\"type\":\"\(change.kind.rawValue)\",\"object\":\"\(change.object.text)\"".utf8)
      append(change.index, named: ",\"index\":", to: &bytes)
      append(change.newIndex, named: ",\"newIndex\":", to: &bytes)
      if let reason = change.reason { bytes.append(contentsOf: ",\"reason\":\"\(reason.rawValue)\"".utf8) }
      if let row = change.row {
        if change.kind != .insert { appendKeys(change.keys, of: row.entity, to: &bytes) }
        bytes.append(contentsOf: ",\"value\":".utf8)
      }
    }
    if let row = change.row { append(row, of: query, revision: change.objectRevision, to: &text) }
    text.append("}".utf8)
  }

  private func appendKeys(_ columns: [QueryColumn], of entity: Entity, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"keys\":[".utf8)
    for (index, column) in columns.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.appendJSONString(column.name(in: entity))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private func append(_ position: RowPosition?, named name: StaticString, to bytes: inout [UInt8]) {
    guard let position else { return }
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    switch position {
    case .row(let row): bytes.append(contentsOf: "\(row)".utf8)
    case .sectioned(let section, let row): bytes.append(contentsOf: "[\(section),\(row)]".utf8)
    }
  }

  /// Appends an object as in a fetch, with the values that the row shows.
  private func append(_ row: QueryRow, of query: Query, revision: Revision, to text: inout EventBuffer) {
    text.write { bytes in
      bytes.append(contentsOf: "{\"@ref\":\"".utf8)
      bytes.append(contentsOf: row.reference.text.utf8)
      bytes.append(UInt8(ascii: "\""))
      // The revision would change with the keys that are left out.
      if query.viewer?.hiddenKeys(of: row.entity).isEmpty ?? true {
        bytes.append(contentsOf: ",\"@revision\":".utf8)
        bytes.appendDecimal(revision)
      }
    }
    for (column, value) in zip(query.columns(of: row.entity), row.shown) {
      text.write { bytes in
        bytes.append(contentsOf: ",\"".utf8)
        bytes.append(contentsOf: column.name(in: row.entity).utf8)
        bytes.append(contentsOf: "\":".utf8)
      }
      text.append(value)
    }
    text.append("}".utf8)
  }

  /// Appends a text of a client as a member, unless it is nil. `name` includes the comma and the colon.
  private func appendText(_ text: String?, named name: StaticString, to bytes: inout [UInt8]) {
    guard let text else { return }
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.appendJSONString(text)
  }

  // MARK: Ends

  /// Returns the `bye` of a stream that the hub ends.
  func closingEvent(after end: StreamEnd) -> EventBytes {
    switch end {
    case .overflow: closingEvent(.overflow)
    case .lifetime: closingEvent(.lifetime)
    case .shutdown, .ended, .clientGone, .stalled: closingEvent(.shutdown)
    }
  }
}

/// The reason in `bye` why the server ends a stream (the specification, section 4).
enum ClosingReason: String {
  case shutdown, expired, lifetime, overflow
}

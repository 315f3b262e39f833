import KeyValueModel
import KeyValueObserving
import Store

/// The events of live queries: `results` and `content` (the specification, section 5).
extension EventEncoder {
  /// The present rows, as the first event of a stream.
  func initialEvent(_ result: QueryResult, _ context: EchoedText?, _ snapshot: Snapshot) -> EventText {
    var text = text()
    let notification = QueryNotification(
      cell: nil, context: context?.text, body: .results(result, snapshot.state, isInitial: true))
    append(notification, revision: snapshot.revision, to: &text)
    return text
  }

  /// A `results` or `content` event.
  func append(
    _ notification: QueryNotification, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to text: inout EventText
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

  private func append(_ result: QueryResult, in state: any ObjectReader, to text: inout EventText) {
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

  /// What `content` says of the rows, encoded once for all that receive it.
  func encoded(_ content: QueryContent) -> EncodedContent {
    var text = text()
    append(content, to: &text)
    return EncodedContent(content: content, text: text)
  }

  private func append(_ content: QueryContent, to text: inout EventText) {
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

  private func append(_ sectionChanges: [SectionChange], to text: inout EventText) {
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

  private func append(_ change: QueryChange, of query: Query, to text: inout EventText) {
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

  /// An object as a fetch would show it, with what the row shows of it.
  private func append(_ row: QueryRow, of query: Query, revision: Revision, to text: inout EventText) {
    text.write { bytes in
      bytes.append(contentsOf: "{\"@ref\":\"".utf8)
      bytes.append(contentsOf: row.reference.text.utf8)
      bytes.append(UInt8(ascii: "\""))
      // It moves with the keys that are left out.
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

  /// Appends a text of a client as a member, if there is one. `name` has the comma and the colon.
  func appendText(_ text: String?, named name: StaticString, to bytes: inout [UInt8]) {
    guard let text else { return }
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.appendJSONString(text)
  }
}

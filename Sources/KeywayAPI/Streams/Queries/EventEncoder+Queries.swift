import KeyValueModel
import KeyValueObserving
import ModelStore

/// The events of live queries: `results` and `content` (the specification, section 5).
extension EventEncoder {
  /// The present rows, as the first event of a stream.
  func initialEvent(_ result: QueryResult, _ context: EchoedText?, _ snapshot: Snapshot) -> [UInt8] {
    var bytes: [UInt8] = []
    let notification = QueryNotification(
      cell: nil, context: context?.text, body: .results(result, snapshot.state, isInitial: true))
    append(notification, revision: snapshot.revision, to: &bytes)
    return bytes
  }

  /// A `results` or `content` event.
  func append(
    _ notification: QueryNotification, revision: Revision, writer: String? = nil, hasID: Bool = true,
    to bytes: inout [UInt8]
  ) {
    let isContent = if case .content = notification.body { true } else { false }
    append(isContent ? "content" : "results", id: hasID ? revision : nil, to: &bytes) { bytes in
      appendHead(revision, writer, &bytes)
      if case .results(_, _, isInitial: true) = notification.body { bytes.append(contentsOf: ",\"initial\":true".utf8) }
      appendText(notification.cell, named: ",\"cell\":", to: &bytes)
      appendText(notification.context, named: ",\"context\":", to: &bytes)
      if let coalesced = notification.coalesced { bytes.append(contentsOf: ",\"coalesced\":\(coalesced)".utf8) }
      switch notification.body {
      case .results(let result, let state, _): append(result, in: state, to: &bytes)
      case .content(let content): bytes.append(contentsOf: content.bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  private func append(_ result: QueryResult, in state: any ObjectReader, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"count\":\(result.count),\"objects\":[".utf8)
    var isFirst = true
    for row in result.window {
      if !isFirst { bytes.append(UInt8(ascii: ",")) }
      isFirst = false
      append(row, of: result.query, revision: state.record(row.reference)?.revision ?? 0, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
    result.appendSections(to: &bytes)
  }

  /// What `content` says of the rows, encoded once for all that receive it.
  func encoded(_ content: QueryContent) -> EncodedContent {
    var bytes: [UInt8] = []
    append(content, to: &bytes)
    return EncodedContent(content: content, bytes: bytes)
  }

  private func append(_ content: QueryContent, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"count\":\(content.count),\"changes\":[".utf8)
    for (index, change) in content.changes.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      append(change, of: content.query, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
    guard !content.sectionChanges.isEmpty else { return }
    bytes.append(contentsOf: ",\"sectionChanges\":[".utf8)
    for (index, change) in content.sectionChanges.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      let (type, name, place) =
        switch change {
        case .insert(let name, let newIndex): ("insert", name, "\"newIndex\":\(newIndex)")
        case .delete(let name, let index): ("delete", name, "\"index\":\(index)")
        }
      bytes.append(contentsOf: "{\"type\":\"\(type)\",\"name\":".utf8)
      name.appendJSON(to: &bytes)
      bytes.append(contentsOf: ",\(place)}".utf8)
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private func append(_ change: QueryChange, of query: Query, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"type\":\"\(change.kind.rawValue)\",\"object\":\"\(change.object.text)\"".utf8)
    append(change.index, named: ",\"index\":", to: &bytes)
    append(change.newIndex, named: ",\"newIndex\":", to: &bytes)
    if let reason = change.reason { bytes.append(contentsOf: ",\"reason\":\"\(reason.rawValue)\"".utf8) }
    if let row = change.row {
      if change.kind != .insert {
        bytes.append(contentsOf: ",\"keys\":[".utf8)
        for (index, key) in change.keys.enumerated() {
          if index > 0 { bytes.append(UInt8(ascii: ",")) }
          bytes.append(contentsOf: "\"\(row.entity.keys[key].name)\"".utf8)
        }
        bytes.append(UInt8(ascii: "]"))
      }
      bytes.append(contentsOf: ",\"value\":".utf8)
      append(row, of: query, revision: change.objectRevision, to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
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
  private func append(_ row: QueryRow, of query: Query, revision: Revision, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: row.reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(revision)
    for (key, value) in zip(query.shownKeys(of: row.entity), row.shown) {
      bytes.append(contentsOf: ",\"".utf8)
      bytes.append(contentsOf: row.entity.keys[key].name.utf8)
      bytes.append(contentsOf: "\":".utf8)
      value.appendJSON(to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  private func appendText(_ text: String?, named name: StaticString, to bytes: inout [UInt8]) {
    guard let text else { return }
    name.withUTF8Buffer { bytes.append(contentsOf: $0) }
    bytes.appendJSONString(text)
  }
}

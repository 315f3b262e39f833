package import KeyValueModel

/// An open event stream, read block by block.
package final class WireStream {
  /// The socket, for tests that interfere with the connection.
  package let socket: WireSocket
  /// The head of the response.
  package let head: WireResponse
  private let reader: WireReader
  private let owner: AnyObject?
  private var text: ArraySlice<UInt8> = []
  /// True once the last chunk has come: the response ended properly, and was not cut off.
  package private(set) var isComplete = false
  /// The last id that was received.
  package private(set) var lastID: String?

  init(socket: WireSocket, reader: WireReader, head: WireResponse, owner: AnyObject?) {
    self.socket = socket
    self.owner = owner
    self.reader = reader
    self.head = head
  }

  /// Returns the next block of any kind; nil at the end of the response.
  package func block(before deadline: Deadline = Deadline()) throws(LoopbackError) -> WireEvent? {
    while true {
      if let event = takeBlock() { return event }
      guard let chunk = try reader.chunk(before: deadline) else {
        isComplete = true
        return nil
      }
      text = text + chunk
    }
  }

  private func takeBlock() -> WireEvent? {
    var lines: [String] = []
    var start = text.startIndex
    while let end = text[start...].firstIndex(of: 0x0A) {
      let line = text[start..<end]
      start = end + 1
      if line.isEmpty {
        text = text[start...]
        let event = WireEvent(lines: lines)
        lastID = event.id ?? lastID
        return event
      }
      lines.append(String(decoding: line, as: UTF8.self))
    }
    return nil
  }

  /// Returns the next event other than a heartbeat. Throws at the end of the response.
  package func next(before deadline: Deadline = Deadline()) throws(LoopbackError) -> WireEvent {
    while let event = try block(before: deadline) {
      if event.data != nil, event.name != "heartbeat" { return event }
    }
    throw LoopbackError(.connectionClosed, "the stream has ended")
  }

  /// Returns the events up to and including the first for which `isLast` holds. The deadline applies to each.
  package func events(until isLast: (WireEvent) -> Bool) throws(LoopbackError) -> [WireEvent] {
    var events: [WireEvent] = []
    while true {
      let event = try next()
      events.append(event)
      if isLast(event) { return events }
    }
  }

  /// Returns the remaining blocks up to the end of the response. The deadline applies to each.
  package func rest() throws(LoopbackError) -> [WireEvent] {
    var events: [WireEvent] = []
    while let event = try block() { events.append(event) }
    return events
  }
}

/// One block of an event stream, as received and parsed.
package struct WireEvent: Equatable {
  /// The lines of the block, without the empty one.
  package let lines: [String]

  /// The block in the form of the specification.
  package var text: String { lines.joined(separator: "\n") }

  /// The reconnection time in milliseconds: the field `retry`.
  package var retry: String? { field("retry") }

  /// The id that a client resumes from: the field `id`.
  package var id: String? { field("id") }

  /// The type: the field `event`.
  package var name: String? { field("event") }

  /// The data, of one line: the field `data`.
  package var data: String? { field("data") }

  /// The data as JSON; null if it is not JSON.
  package var json: Value { data.flatMap { try? Value(json: $0) } ?? .null }

  /// The changes of a `change`.
  package var changes: [Value] { json["changes"].items }

  /// The block without its `retry` line, which is jittered.
  package var withoutRetry: WireEvent { WireEvent(lines: lines.filter { !$0.hasPrefix("retry:") }) }

  private func field(_ name: String) -> String? {
    lines.first { $0.hasPrefix(name + ":") }.map { String($0.dropFirst(name.count + 1).drop { $0 == " " }) }
  }
}

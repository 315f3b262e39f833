/// A parser from bytes to events by the WHATWG HTML standard, section 9.2.6, without any I/O.
///
/// It takes the stream in pieces of any size, which may be split within a character or between the two bytes of CR LF.
/// The data held between pieces is bounded by `maximumEventBytes`.
package struct EventStreamParser: Sendable {
  /// The default maximum size of one event: several times the server's largest body.
  package static let defaultMaximumEventBytes = 8 << 20

  /// The last event id that the stream has set, also by a block without data.
  package private(set) var lastEventID: String
  /// The last reconnection time that the stream has set; nil before the first.
  package private(set) var retryMilliseconds: Int?

  private let maximumEventBytes: Int
  private var line: [UInt8] = []
  private var data: [UInt8] = []
  private var eventType = ""
  private var pendingID: String
  private var isAtStart = true
  private var followsCarriageReturn = false

  /// Creates a parser at the beginning of a stream that continues after `lastEventID`.
  package init(lastEventID: String = "", maximumEventBytes: Int = defaultMaximumEventBytes) {
    self.lastEventID = lastEventID
    self.pendingID = lastEventID
    self.maximumEventBytes = maximumEventBytes
  }

  /// Returns the events that the next piece of the stream completes, in order. After an error the parser must not be
  /// used.
  package mutating func parse(_ chunk: [UInt8]) throws(ClientError) -> [ServerSentEvent] {
    var events: [ServerSentEvent] = []
    var rest = chunk[...]
    if followsCarriageReturn, let first = rest.first {
      followsCarriageReturn = false
      if first == UInt8(ascii: "\n") { rest = rest.dropFirst() }
    }
    while let end = rest.firstIndex(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
      line.append(contentsOf: rest[..<end])
      try checkSize()
      var next = end + 1
      if rest[end] == UInt8(ascii: "\r") {
        if next == rest.endIndex {
          followsCarriageReturn = true
        } else if rest[next] == UInt8(ascii: "\n") {
          next += 1
        }
      }
      rest = rest[next...]
      if let event = endLine() { events.append(event) }
    }
    line.append(contentsOf: rest)
    try checkSize()
    return events
  }

  private func checkSize() throws(ClientError) {
    guard line.count + data.count + eventType.utf8.count <= maximumEventBytes else {
      throw .eventTooLarge(limitBytes: maximumEventBytes)
    }
  }

  private mutating func endLine() -> ServerSentEvent? {
    defer { line.removeAll(keepingCapacity: line.capacity <= 1 << 16) }
    if isAtStart {
      isAtStart = false
      if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
    }
    guard !line.isEmpty else { return dispatch() }
    guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
      setField(line[...], to: [])
      return nil
    }
    // A line that begins with a colon is a comment.
    guard colon > 0 else { return nil }
    var value = line[(colon + 1)...]
    if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
    setField(line[..<colon], to: value)
    return nil
  }

  private mutating func setField(_ name: ArraySlice<UInt8>, to value: ArraySlice<UInt8>) {
    switch name.count {
    case 4 where name.elementsEqual("data".utf8):
      data.append(contentsOf: value)
      data.append(UInt8(ascii: "\n"))
    case 5 where name.elementsEqual("event".utf8):
      eventType = String(decoding: value, as: UTF8.self)
    case 2 where name.elementsEqual("id".utf8):
      // An id with NUL in it could not be sent back in a header, so the standard ignores it.
      if !value.contains(0) { pendingID = String(decoding: value, as: UTF8.self) }
    case 5 where name.elementsEqual("retry".utf8):
      setRetry(value)
    default:
      break
    }
  }

  private mutating func setRetry(_ value: ArraySlice<UInt8>) {
    guard !value.isEmpty, value.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      let milliseconds = Int(String(decoding: value, as: UTF8.self))
    else { return }
    retryMilliseconds = milliseconds
  }

  private mutating func dispatch() -> ServerSentEvent? {
    lastEventID = pendingID
    defer {
      data.removeAll(keepingCapacity: data.capacity <= 1 << 16)
      eventType = ""
    }
    guard !data.isEmpty else { return nil }
    return ServerSentEvent(
      id: lastEventID, event: eventType.isEmpty ? "message" : eventType,
      data: String(decoding: data.dropLast(), as: UTF8.self))
  }
}

/// One event of an event stream, as the HTML standard dispatches it.
package struct ServerSentEvent: Hashable, Sendable {
  /// The last event id. It persists, so an event without its own id has that of the one before. Empty until the first.
  package var id: String
  /// The type; `message` if the block names none.
  package var event: String
  /// The data lines, joined by line feeds.
  package var data: String

  /// Creates an event with these parts.
  package init(id: String, event: String, data: String) {
    self.id = id
    self.event = event
    self.data = data
  }
}

import KeywayServer
import Support

/// A transport to a node over plain HTTP, on connections that are kept for reuse. Any thread may call it; each call
/// blocks until its answer arrives.
///
/// A request is sent once. It is sent again, on a new connection, only if the first connection was kept from an earlier
/// request and did not accept the whole request, so that the other node certainly did not receive it.
final class PlainLink: NodeLink {
  private struct Idle {
    let connection: NodeConnection
    let since: ContinuousClock.Instant
  }

  private struct State {
    var idle: [Idle] = []
    var busy: [ObjectIdentifier: NodeConnection] = [:]
    var isCut = false
  }

  private let address: NodeAddress
  private let state = Locked(State())
  /// The maximum number of idle connections.
  private let idleLimit: Int

  /// The time for which an idle connection is kept. It is shorter than a server's, so that servers seldom close a
  /// connection that is about to be reused.
  private static let idleTime = Duration.seconds(4)
  /// The time limit for connecting.
  private let connectTime: Duration

  /// Creates a link that keeps at most `idleLimit` idle connections and spends at most `connectTime` on making a new
  /// one.
  init(_ address: NodeAddress, keeping idleLimit: Int, connecting connectTime: Duration) {
    self.address = address
    self.connectTime = connectTime
    self.idleLimit = idleLimit
  }

  deinit { cut() }

  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    let bytes = request.bytes(to: address)
    if let kept = takeIdle() {
      do throws(NodeFault) {
        try kept.send(bytes, before: .now + silence)
      } catch {
        end(kept)
        guard error.isUnsent else { throw error }
        return try send(bytes, request.method, on: open(), silence, receive)
      }
      return try answer(to: request.method, on: kept, silence, receive)
    }
    return try send(bytes, request.method, on: open(), silence, receive)
  }

  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?) {
    let connection = try open()
    defer { end(connection) }
    try connection.send(request.bytes(to: address), before: .now + silence)
    var reader = NodeReader(connection, silence: silence)
    var answer = try reader.head()
    if answer.status == 200, answer.isEventStream, answer["Transfer-Encoding"]?.lowercased() == "chunked" {
      return (answer, PlainStream(connection, reader.rest))
    }
    var body: [UInt8] = []
    try reader.content(of: answer, to: request.method) { piece throws(NodeFault) in
      guard body.count + piece.count <= limit else { throw NodeFault("the answer has more than \(limit) bytes") }
      body.append(contentsOf: piece)
    }
    answer.body = body
    return (answer, nil)
  }

  func cut() {
    let connections = state.withLock { state in
      state.isCut = true
      state.idle = []
      return Array(state.busy.values)
    }
    for connection in connections { connection.cut() }
  }

  private func send(
    _ bytes: [UInt8], _ method: String, on connection: NodeConnection, _ silence: Duration,
    _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    do throws(NodeFault) {
      try connection.send(bytes, before: .now + silence)
    } catch {
      end(connection)
      throw error
    }
    return try answer(to: method, on: connection, silence, receive)
  }

  private func answer(
    to method: String, on connection: NodeConnection, _ silence: Duration,
    _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    var reader = NodeReader(connection, silence: silence)
    do throws(NodeFault) {
      let answer = try reader.answer(to: method, receive)
      let isKept = reader.isEmpty && answer["Connection"]?.lowercased() != "close"
      if isKept { keep(connection) } else { end(connection) }
      return answer
    } catch {
      end(connection)
      throw error
    }
  }

  // MARK: Connections

  private func takeIdle() -> NodeConnection? {
    state.withLock { state in
      while let idle = state.idle.popLast() {
        guard idle.since + Self.idleTime > .now, idle.connection.isOpen else { continue }
        state.busy[ObjectIdentifier(idle.connection)] = idle.connection
        return idle.connection
      }
      return nil
    }
  }

  private func open() throws(NodeFault) -> NodeConnection {
    let connection = try NodeConnection(address, before: .now + connectTime)
    let isCut = state.withLock { state in
      if !state.isCut { state.busy[ObjectIdentifier(connection)] = connection }
      return state.isCut
    }
    if isCut { throw NodeFault("this node is about to stop", isUnsent: true) }
    return connection
  }

  private func keep(_ connection: NodeConnection) {
    state.withLock { state in
      state.busy[ObjectIdentifier(connection)] = nil
      guard !state.isCut else { return }
      if state.idle.count >= idleLimit { state.idle.removeFirst() }
      state.idle.append(Idle(connection: connection, since: .now))
    }
  }

  private func end(_ connection: NodeConnection) {
    state.withLock { $0.busy[ObjectIdentifier(connection)] = nil }
  }
}

/// Reads answers from a connection to another node (RFC 9112), with a limit on the size of their heads.
private struct NodeReader {
  private let connection: NodeConnection
  private let silence: Duration
  private var buffer: [UInt8] = []
  private var position = 0

  /// The maximum size of a head, and of a line between chunks, in bytes.
  private static let headBytes = 1 << 16

  /// Creates a reader. A read fails if no data arrives for `silence`.
  init(_ connection: NodeConnection, silence: Duration) {
    self.connection = connection
    self.silence = silence
  }

  /// True if all received bytes were consumed.
  var isEmpty: Bool { position == buffer.count }

  /// The received bytes that were not consumed.
  var rest: ArraySlice<UInt8> { buffer[position...] }

  /// Reads the head of an answer, without its content.
  mutating func head() throws(NodeFault) -> NodeAnswer {
    var answer = try readHead()
    // Informational (1xx) responses precede the final one (RFC 9110 §15.2).
    while (100..<200).contains(answer.status) { answer = try readHead() }
    return answer
  }

  /// Reads the answer to a request with a method. Passes the content to `receive` as it arrives.
  mutating func answer(
    to method: String, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    let answer = try head()
    try content(of: answer, to: method, receive)
    return answer
  }

  /// Reads the content of an answer whose head was read; `method` is that of the request.
  mutating func content(
    of answer: NodeAnswer, to method: String, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    guard method != "HEAD", answer.status != 204, answer.status != 304 else { return }
    if answer["Transfer-Encoding"]?.lowercased() == "chunked" {
      try chunks(receive)
    } else if let text = answer["Content-Length"] {
      guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let count = Int(text) else { throw Self.malformedResponse }
      try content(count, receive)
    } else {
      throw NodeFault("the answer does not state its length")
    }
  }

  private mutating func readHead() throws(NodeFault) -> NodeAnswer {
    var bytes = 0
    let words = try line(&bytes).split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]), (100...599).contains(status)
    else {
      throw Self.malformedResponse
    }
    var fields: [(name: String, value: String)] = []
    while true {
      let text = try line(&bytes)
      if text.isEmpty { return NodeAnswer(status: status, fields: fields) }
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else { throw Self.malformedResponse }
      fields.append((String(text[..<colon]), text[text.index(after: colon)...].trimmingSpaces()))
    }
  }

  private mutating func chunks(_ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void) throws(NodeFault) {
    while true {
      var bytes = 0
      let size = try line(&bytes).prefix { $0 != ";" }
      guard let count = Int(size, radix: 16), count >= 0, !size.hasPrefix("+") else { throw Self.malformedResponse }
      if count == 0 { break }
      try content(count, receive)
      guard try line(&bytes).isEmpty else { throw Self.malformedResponse }
    }
    var bytes = 0
    while try !line(&bytes).isEmpty {}
  }

  private mutating func content(
    _ count: Int, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    var rest = count
    while rest > 0 {
      if isEmpty { try fill() }
      let piece = buffer[position...].prefix(rest)
      try receive(piece)
      position += piece.count
      rest -= piece.count
    }
  }

  /// Reads a line, and returns it without its terminator. Adds the bytes that were read to `bytes`, which counts the
  /// head.
  private mutating func line(_ bytes: inout Int) throws(NodeFault) -> String {
    var text: [UInt8] = []
    while true {
      if isEmpty { try fill() }
      let end = buffer[position...].firstIndex(of: UInt8(ascii: "\n"))
      let piece = buffer[position..<(end ?? buffer.endIndex)]
      bytes += piece.count + (end == nil ? 0 : 1)
      guard bytes <= Self.headBytes else { throw NodeFault("the head of the answer is too long") }
      text += piece
      position = piece.endIndex + (end == nil ? 0 : 1)
      if end != nil { break }
    }
    if text.last == UInt8(ascii: "\r") { text.removeLast() }
    return String(decoding: text, as: UTF8.self)
  }

  private mutating func fill() throws(NodeFault) {
    buffer = try connection.receive(before: .now + silence)
    position = 0
    guard !buffer.isEmpty else { throw NodeFault("the connection was closed before the answer was complete") }
  }

  private static var malformedResponse: NodeFault { NodeFault("the answer is not a valid HTTP response of a node") }
}

/// The events of a chunked stream, on a connection of its own.
private final class PlainStream: NodeStream {
  private struct State {
    var chunks = ChunkedContent()
    /// The bytes that arrived with the head of the answer.
    var first: ArraySlice<UInt8>
    /// True once the other node has closed the connection.
    var isClosed = false

    /// Decodes chunks. Returns nil if the bytes have no content and do not end the stream.
    mutating func content(of bytes: ArraySlice<UInt8>) throws(NodeFault) -> [UInt8]? {
      var content: [UInt8] = []
      try chunks.take(bytes, into: &content)
      return content.isEmpty && !chunks.isFinished ? nil : content
    }

    /// Decodes the bytes that arrived with the head. Returns nil if they have no content.
    mutating func takeFirst() throws(NodeFault) -> [UInt8]? {
      defer { first = [] }
      return first.isEmpty ? nil : try content(of: first)
    }
  }

  private let connection: NodeConnection
  private let state: Locked<State>

  /// Creates the stream of a connection; `first` are the bytes that arrived after the head of the answer.
  init(_ connection: NodeConnection, _ first: ArraySlice<UInt8>) {
    self.connection = connection
    state = Locked(State(first: first))
    connection.watchPeer()
  }

  var descriptor: Int32 { connection.descriptor }

  var isFinished: Bool { state.withLock { $0.isClosed || $0.chunks.isFinished } }

  func receive(before deadline: ContinuousClock.Instant) throws(NodeFault) -> [UInt8] {
    if let content = try takeFirst() { return content }
    while !isFinished {
      if let content = try take(connection.receive(before: deadline)) { return content }
    }
    return []
  }

  func receiveNow() throws(NodeFault) -> [UInt8]? {
    if let content = try takeFirst() { return content }
    guard !isFinished else { return [] }
    guard let bytes = try connection.receiveNow() else { return nil }
    return try take(bytes)
  }

  private func takeFirst() throws(NodeFault) -> [UInt8]? {
    try state.withLock { state throws(NodeFault) in try state.takeFirst() }
  }

  private func take(_ bytes: [UInt8]) throws(NodeFault) -> [UInt8]? {
    try state.withLock { state throws(NodeFault) in
      if bytes.isEmpty {
        state.isClosed = true
        return []
      }
      return try state.content(of: bytes[...])
    }
  }
}

/// A decoder of chunked content that arrives in pieces of any size (RFC 9112 §7.1).
struct ChunkedContent {
  private enum Place {
    case size, content, contentEnd, trailer
  }

  private var place = Place.size
  /// The received part of an incomplete line.
  private var line: [UInt8] = []
  /// The number of bytes of the present chunk that have not arrived.
  private var rest = 0

  /// The maximum length of a line between chunks, in bytes.
  private static let lineLimit = 4_096

  /// True once the last chunk and its trailer have arrived.
  private(set) var isFinished = false

  /// Appends the content in the next bytes to `content`, and ignores bytes after the last chunk. Throws if the bytes
  /// are not chunks.
  mutating func take(_ bytes: ArraySlice<UInt8>, into content: inout [UInt8]) throws(NodeFault) {
    var index = bytes.startIndex
    while index < bytes.endIndex, !isFinished {
      if place == .content {
        let piece = bytes[index...].prefix(rest)
        content.append(contentsOf: piece)
        rest -= piece.count
        index = piece.endIndex
        if rest == 0 { place = .contentEnd }
        continue
      }
      let byte = bytes[index]
      index += 1
      guard byte == UInt8(ascii: "\n") else {
        guard line.count < Self.lineLimit else { throw Self.malformedChunk }
        line.append(byte)
        continue
      }
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      try finishLine()
      line = []
    }
  }

  private mutating func finishLine() throws(NodeFault) {
    switch place {
    case .size:
      let digits = String(decoding: line.prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
      guard !digits.hasPrefix("+"), let count = Int(digits, radix: 16), count >= 0 else { throw Self.malformedChunk }
      rest = count
      place = count == 0 ? .trailer : .content
    case .contentEnd:
      guard line.isEmpty else { throw Self.malformedChunk }
      place = .size
    case .trailer: isFinished = line.isEmpty
    case .content: break
    }
  }

  private static var malformedChunk: NodeFault { NodeFault("the stream is not in chunked transfer coding") }
}

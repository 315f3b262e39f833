/// Reads answers from a connection to another node (RFC 9112), within a limit of bytes for their heads.
struct NodeReader {
  private let connection: NodeConnection
  private let silence: Duration
  private var buffer: [UInt8] = []
  private var position = 0

  /// The most bytes of a head, and of a line between chunks.
  private static let headBytes = 1 << 16

  /// A reader to which something must come within `silence`, again and again.
  init(_ connection: NodeConnection, silence: Duration) {
    self.connection = connection
    self.silence = silence
  }

  /// Whether everything that came was read.
  var isEmpty: Bool { position == buffer.count }

  /// What came behind what was read.
  var rest: ArraySlice<UInt8> { buffer[position...] }

  /// Reads the head of an answer, and no more.
  mutating func head() throws(NodeFault) -> NodeAnswer {
    var answer = try anyHead()
    // Those say that another comes (RFC 9110 §15.2).
    while (100..<200).contains(answer.status) { answer = try anyHead() }
    return answer
  }

  /// Reads an answer to a method; its content is given to `receive` as it comes.
  mutating func answer(
    to method: String, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    let answer = try head()
    try content(of: answer, to: method, receive)
    return answer
  }

  /// Reads the content of the answer to a method whose head was read.
  mutating func content(
    of answer: NodeAnswer, to method: String, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    guard method != "HEAD", answer.status != 204, answer.status != 304 else { return }
    if answer["Transfer-Encoding"]?.lowercased() == "chunked" {
      try chunks(receive)
    } else if let text = answer["Content-Length"] {
      guard text.allSatisfy({ $0.isASCII && $0.isNumber }), let count = Int(text) else { throw Self.strange }
      try content(count, receive)
    } else {
      throw NodeFault("the answer does not say how long it is")
    }
  }

  private mutating func anyHead() throws(NodeFault) -> NodeAnswer {
    var bytes = 0
    let words = try line(&bytes).split(separator: " ", maxSplits: 2)
    guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]), (100...599).contains(status)
    else {
      throw Self.strange
    }
    var fields: [(name: String, value: String)] = []
    while true {
      let text = try line(&bytes)
      if text.isEmpty { return NodeAnswer(status: status, fields: fields) }
      guard let colon = text.firstIndex(of: ":"), colon > text.startIndex else { throw Self.strange }
      fields.append((String(text[..<colon]), text[text.index(after: colon)...].trimmingSpaces()))
    }
  }

  private mutating func chunks(_ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void) throws(NodeFault) {
    while true {
      var bytes = 0
      let size = try line(&bytes).prefix { $0 != ";" }
      guard let count = Int(size, radix: 16), count >= 0, !size.hasPrefix("+") else { throw Self.strange }
      if count == 0 { break }
      try content(count, receive)
      guard try line(&bytes).isEmpty else { throw Self.strange }
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

  /// A line without its end. `bytes` counts what was read of the head.
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
    guard !buffer.isEmpty else { throw NodeFault("the connection was closed before the answer was whole") }
  }

  private static var strange: NodeFault { NodeFault("the answer is not HTTP as a node speaks it") }
}

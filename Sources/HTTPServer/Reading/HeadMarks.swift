import Glibc

/// What the answer to a request has to have of its head, where libmicrohttpd never hears of the request: read from as
/// much of the head as has come, mistakes or not.
///
/// It is given the bytes of the head in pieces, and looks at nothing but the lines of these fields.
struct HeadMarks {
  /// The id that the client gave the request; nil where it gave none, none that is one, or several.
  private(set) var requestID: RequestID?
  /// The page that sends the request (`Origin`, Fetch standard); nil where it is not said once.
  private(set) var origin: String?
  /// Whether nothing more is looked at: the head has ended, or has as many bytes as are looked at.
  private(set) var isOver = false
  private var hasRequestID = false
  private var hasOrigin = false
  private var hasFirstLine = false
  private var byteCount = 0
  /// The line that has not ended, as far as one of the fields may be in it.
  private var line: [UInt8] = []

  /// The most bytes of a head that are looked at.
  static let byteLimit = 65_536
  /// The longest line that has one of the fields.
  private static let lineLimit = 512

  /// Reads on in the head.
  mutating func read(_ bytes: UnsafeRawBufferPointer) {
    var rest = bytes.prefix(Self.byteLimit - byteCount)
    byteCount += rest.count
    while !isOver, let end = rest.firstIndex(of: .lineFeed) {
      append(rest[..<end])
      takeLine()
      rest = rest[(end + 1)...]
    }
    if !isOver { append(rest) }
    if byteCount >= Self.byteLimit { isOver = true }
  }

  private mutating func append(_ part: Slice<UnsafeRawBufferPointer>) {
    line.append(contentsOf: part.prefix(Self.lineLimit + 1 - line.count))
  }

  private mutating func takeLine() {
    var line: [UInt8] = []
    swap(&line, &self.line)
    if line.last == .carriageReturn { line.removeLast() }
    // An empty line before the first is ignored (RFC 9112 §2.2).
    if line.isEmpty { isOver = hasFirstLine }
    if hasFirstLine, line.count <= Self.lineLimit { line.withUnsafeMutableBytes { note($0) } }
    if !line.isEmpty { hasFirstLine = true }
  }

  private mutating func note(_ line: UnsafeMutableRawBufferPointer) {
    guard !line.isEmpty, let field = try? FieldLine(line) else { return }
    switch field.name.count {
    case 6 where field.name.isCaseless("origin"):
      origin = hasOrigin ? nil : String(validating: field.trimmedValue(), as: UTF8.self)
      hasOrigin = true
    case 12 where field.name.isCaseless("x-request-id"):
      requestID = hasRequestID ? nil : RequestID(sent: UnsafeRawBufferPointer(field.trimmedValue()))
      hasRequestID = true
    default: break
    }
  }
}

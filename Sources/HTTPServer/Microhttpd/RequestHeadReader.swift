import Support

/// Parses the head of one request strictly (RFC 9112 §2 to §6), line by line as its bytes arrive.
///
/// It is given all bytes since the head's beginning each time, and continues where it stopped. An error is reported
/// with its line, without waiting for the rest of an invalid request.
struct RequestHeadReader {
  /// The way in which the end of the body is determined.
  enum Framing: Equatable {
    case none
    case length(Int)
    case chunks
  }

  /// The result so far.
  enum Progress: Equatable {
    case incomplete
    /// The head has this many bytes.
    case complete(byteCount: Int, Framing)
    case refused(RequestFault)
  }

  /// The limits for a head.
  struct Limits {
    /// The memory that libmicrohttpd may allocate for the connection, in bytes.
    let memoryBytes: Int
    /// The maximum length of a body in bytes.
    let bodyBytes: Int

    /// The maximum size of the head of a response, which takes the same memory.
    var responseBytes: Int { max(512 + CommonFields.byteCount, memoryBytes / 8) }
  }

  /// True if the method is HEAD, so that a response has no body.
  private(set) var isHeadMethod = false
  private let limits: Limits
  private var lines = LineReader()
  private var hasRequestLine = false
  private var isHTTP10 = false
  private var hostCount = 0
  private var contentLength: Int?
  private var hasTransferEncoding = false
  private var isChunked = true
  private var hasContentCoding = false
  /// The bytes that libmicrohttpd allocates in addition to the head itself.
  private var recordBytes = 0

  init(limits: Limits) {
    self.limits = limits
  }

  /// Continues parsing. `bytes` are all bytes since the head's beginning; white space after a value is moved before it.
  mutating func read(_ bytes: UnsafeMutableRawBufferPointer) -> Progress {
    while true {
      switch lines.next(in: bytes) {
      case .line(let line) where line.isEmpty:
        // An empty line before the first is ignored (RFC 9112 §2.2).
        if hasRequestLine { return finish(byteCount: lines.position) }
      case .line(let line):
        if let fault = hasRequestLine ? field(line) : requestLine(line) { return .refused(fault) }
      case .malformed: return .refused(.malformed(.lineEnd))
      case .nothing: return rest(of: bytes)
      }
    }
  }

  /// Returns the result while no further line is complete.
  private func rest(of bytes: UnsafeMutableRawBufferPointer) -> Progress {
    let memory = limits.memoryBytes
    guard bytes.count <= memory - limits.responseBytes else {
      return .refused(hasRequestLine ? .headersTooLarge(limit: memory) : .targetTooLong(limit: memory))
    }
    return hasRequestLine ? .incomplete : beginning(bytes[lines.position...].rebased)
  }

  /// Returns the result for an incomplete first line: if it does not begin with a method, it is not HTTP, and is
  /// refused without waiting for more.
  private func beginning(_ line: UnsafeMutableRawBufferPointer) -> Progress {
    let token = ByteSet.token
    for byte in line where !token.contains(byte) {
      let isPossible = byte == 0x20 || (byte == .carriageReturn && line.count == 1)
      return isPossible ? .incomplete : .refused(.malformed(.method))
    }
    return .incomplete
  }

  // MARK: The request line

  private mutating func requestLine(_ line: UnsafeMutableRawBufferPointer) -> RequestFault? {
    hasRequestLine = true
    guard let first = line.firstIndex(of: 0x20), let last = line.lastIndex(of: 0x20), first < last else {
      return .malformed(.requestLine)
    }
    let method = line[..<first].rebased
    let token = ByteSet.token
    guard !method.isEmpty, method.allSatisfy(token.contains) else { return .malformed(.method) }
    isHeadMethod = method.isExactly("HEAD")
    if let fault = version(line[(last + 1)...].rebased) { return fault }
    let target = line[(first + 1)..<last].rebased
    return isTarget(target, isOptions: method.isExactly("OPTIONS"))
      ? nil : .malformed(.target)
  }

  /// Parses the version. Only HTTP/1.0 and HTTP/1.1 are supported; other versions of the same form are refused as
  /// unsupported.
  private mutating func version(_ text: UnsafeMutableRawBufferPointer) -> RequestFault? {
    guard text.count == 8, text[..<5].rebased.isExactly("HTTP/"), text[5].isDigit, text[6] == UInt8(ascii: "."),
      text[7].isDigit
    else { return .malformed(.requestLine) }
    isHTTP10 = text[7] == UInt8(ascii: "0")
    return text[5] == UInt8(ascii: "1") && text[7] <= UInt8(ascii: "1") ? nil : .unsupportedVersion
  }

  /// Returns true if the target has one of the forms of RFC 9112 §3.2, except that of CONNECT, which is not supported.
  private func isTarget(_ target: UnsafeMutableRawBufferPointer, isOptions: Bool) -> Bool {
    var isASCII = true
    for byte in target {
      if !byte.isTargetContent { return false }
      if byte >= 0x80 { isASCII = false }
    }
    guard isASCII || String(validating: target, as: UTF8.self) != nil, let first = target.first else { return false }
    if first == UInt8(ascii: "/") { return true }
    if first == UInt8(ascii: "*") { return target.count == 1 && isOptions }
    guard target.beginsCaseless("http://") || target.beginsCaseless("https://"),
      let colon = target.firstIndex(of: UInt8(ascii: ":"))
    else { return false }
    let authority = target[(colon + 3)...].prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
    let host = ByteSet.host
    return !authority.isEmpty && authority.allSatisfy(host.contains)
  }

  // MARK: Fields

  private mutating func field(_ line: UnsafeMutableRawBufferPointer) -> RequestFault? {
    do throws(RequestDefect) {
      let field = try FieldLine(line)
      recordBytes += Self.fieldRecordBytes
      return known(field.name, value: field.trimmedValue())
    } catch {
      return .malformed(error)
    }
  }

  /// Checks the fields that determine where the request ends and to which host it goes.
  private mutating func known(
    _ name: UnsafeMutableRawBufferPointer, value: UnsafeMutableRawBufferPointer
  ) -> RequestFault? {
    switch name.count {
    case 4 where name.isCaseless("host"):
      let host = ByteSet.host
      hostCount += 1
      if hostCount > 1 { return .malformed(.repeatedHost) }
      return value.allSatisfy(host.contains) ? nil : .malformed(.host)
    case 6 where name.isCaseless("cookie"):
      // libmicrohttpd parses cookies in a copy.
      let separators = value.count { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
      recordBytes += value.count + 16 + (separators + 1) * Self.fieldRecordBytes
    case 14 where name.isCaseless("content-length"):
      if contentLength != nil { return .malformed(.repeatedContentLength) }
      guard !value.isEmpty, value.allSatisfy(\.isDigit) else { return .malformed(.contentLength) }
      // A number too large to represent counts as the maximum instead of overflowing.
      contentLength = value.reduce(0) { $0 > Int.max / 10 - 1 ? Int.max : $0 * 10 + Int($1 - 48) }
    case 16 where name.isCaseless("content-encoding"):
      if !value.isEmpty, !value.isCaseless("identity") { hasContentCoding = true }
    case 17 where name.isCaseless("transfer-encoding"):
      // Several lines are one list (RFC 9110 §5.3), and a list of two differs from `chunked`.
      isChunked = !hasTransferEncoding && value.isCaseless("chunked")
      hasTransferEncoding = true
    default: break
    }
    return nil
  }

  // MARK: The end

  private func finish(byteCount: Int) -> Progress {
    if let fault = faultOfTheWhole(byteCount: byteCount) { return .refused(fault) }
    if hasTransferEncoding { return .complete(byteCount: byteCount, .chunks) }
    guard let contentLength, contentLength > 0 else { return .complete(byteCount: byteCount, .none) }
    return .complete(byteCount: byteCount, .length(contentLength))
  }

  private func faultOfTheWhole(byteCount: Int) -> RequestFault? {
    if hostCount == 0, !isHTTP10 { return .malformed(.missingHost) }
    if hasTransferEncoding {
      if contentLength != nil { return .malformed(.bothLengths) }
      if isHTTP10 { return .malformed(.transferCodingInHTTP10) }
      if !isChunked { return .unsupportedTransferCoding }
    }
    if hasContentCoding { return .encodedBody }
    if contentLength == .max { return .bodyTooLarge(limit: limits.bodyBytes) }
    // libmicrohttpd reads into one half of its memory, or more for a longer head, and keeps records in the rest.
    let memory = limits.memoryBytes
    let reading = max(memory / 2, byteCount + 256)
    guard recordBytes + reading <= memory, recordBytes + byteCount + limits.responseBytes <= memory else {
      return .headersTooLarge(limit: memory)
    }
    return nil
  }

  /// The number of bytes that libmicrohttpd allocates for a field or a cookie on a 64-bit machine.
  private static let fieldRecordBytes = 64
}

/// A well-formed header or trailer line: a name, a colon immediately after it, and a value (RFC 9112 §5).
struct FieldLine {
  let name: UnsafeMutableRawBufferPointer
  /// The value with the white space around it.
  let value: UnsafeMutableRawBufferPointer

  /// Splits a line that is not empty, or throws its defect.
  init(_ line: UnsafeMutableRawBufferPointer) throws(RequestDefect) {
    if line[0].isBlank { throw .foldedLine }
    let token = ByteSet.token
    var colon = 0
    while colon < line.count, token.contains(line[colon]) { colon += 1 }
    guard colon > 0, colon < line.count, line[colon] == UInt8(ascii: ":") else { throw .fieldName }
    for index in (colon + 1)..<line.count where !line[index].isFieldContent {
      throw line[index] == .carriageReturn ? .lineEnd : .fieldValue
    }
    name = line[..<colon].rebased
    value = line[(colon + 1)...].rebased
  }

  /// Returns the value without the white space around it, after moving it to the end of its place: libmicrohttpd skips
  /// the white space before a value, but takes the white space after it for a part of the value.
  func trimmedValue() -> UnsafeMutableRawBufferPointer {
    var start = 0
    var end = value.count
    while start < end, value[start].isBlank { start += 1 }
    while end > start, value[end - 1].isBlank { end -= 1 }
    let trailing = value.count - end
    guard trailing > 0 else { return value[start...].rebased }
    let content = value[start..<end].rebased
    let moved = value[(start + trailing)...].rebased
    UnsafeMutableRawBufferPointer(moved).copyMemory(from: UnsafeRawBufferPointer(content))
    for index in start..<(start + trailing) { value[index] = 0x20 }
    return moved
  }
}

/// Splits bytes that arrive in pieces into lines; it is given all of them each time.
struct LineReader {
  /// The next line, if any.
  enum Next {
    /// A line, without its end.
    case line(UnsafeMutableRawBufferPointer)
    /// A line feed without a carriage return before it.
    case malformed
    /// There is no complete line.
    case nothing
  }

  /// The start of the first line that was not returned yet.
  private(set) var position = 0
  private var searchStart = 0

  /// Returns the next line of `bytes`.
  mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> Next {
    guard let end = UnsafeRawBufferPointer(bytes).offset(of: .lineFeed, from: searchStart) else {
      searchStart = bytes.count
      return .nothing
    }
    guard end > position, bytes[end - 1] == .carriageReturn else { return .malformed }
    defer {
      position = end + 1
      searchStart = position
    }
    return .line(bytes[position..<(end - 1)].rebased)
  }
}

/// A set of ASCII characters, tested one byte at a time.
struct ByteSet {
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// Creates the set of a text's characters, all of which must be ASCII.
  init(_ text: String) {
    for byte in text.utf8 {
      precondition(byte < 128)
      if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
    }
  }

  /// Returns true if a byte is one of the characters.
  func contains(_ byte: UInt8) -> Bool {
    (byte < 64 ? low >> UInt64(byte) : byte < 128 ? high >> UInt64(byte - 64) : 0) & 1 == 1
  }

  private static let alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  /// The characters of a method and of the name of a field (RFC 9110 §5.6.2).
  static let token = ByteSet("!#$%&'*+-.^_`|~" + alphanumerics)
  /// The characters of a `Host`: a name or an address in brackets, with or without a port (RFC 3986 §3.2.2).
  fileprivate static let host = ByteSet("-._~!$&'()*+,;=%:[]" + alphanumerics)
}

extension UInt8 {
  /// True for white space within a line.
  fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }

  /// True if the byte is allowed in the value of a field (RFC 9110 §5.5): no control character but the tab.
  var isFieldContent: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

  /// True if the byte is allowed in a request target; beyond ASCII only UTF-8 is accepted.
  var isTargetContent: Bool { self > 0x20 && self != 0x7F && self != UInt8(ascii: "#") }

  fileprivate var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  static let carriageReturn: UInt8 = 0x0D
  static let lineFeed: UInt8 = 0x0A
}

extension UnsafeMutableRawBufferPointer {
  /// Returns true if the bytes are this text.
  fileprivate func isExactly(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return indices.allSatisfy { self[$0] == text.utf8Start[$0] }
  }

  /// Returns true if the bytes equal a text of lowercase ASCII letters and other characters, ignoring the case of their
  /// letters.
  func isCaseless(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in 0..<count {
      let byte = self[index]
      let lowered = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
      if lowered != text.utf8Start[index] { return false }
    }
    return true
  }

  /// Returns true if the bytes begin with such a text, ignoring the case of their letters.
  fileprivate func beginsCaseless(_ text: StaticString) -> Bool {
    count >= text.utf8CodeUnitCount && self[..<text.utf8CodeUnitCount].rebased.isCaseless(text)
  }
}

extension Slice<UnsafeMutableRawBufferPointer> {
  /// The same memory, indexed from 0.
  var rebased: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: self) }
}

import Glibc

/// Reads the head of one request strictly (RFC 9112 §2 to §6), line by line as its bytes come.
///
/// It is given all bytes since the head's beginning each time, and goes on where it stopped. A mistake is found with
/// the line that it is in: nothing waits for the rest of what is no request.
struct RequestHeadReader {
  /// How the end of the body is found.
  enum Framing: Equatable {
    case none
    case length(Int)
    case chunks
  }

  /// What is known by now.
  enum Progress: Equatable {
    case incomplete
    /// The head takes so many bytes.
    case complete(byteCount: Int, Framing)
    case refused(RequestFault)
  }

  /// The bounds that a head is read within.
  struct Limits {
    /// What libmicrohttpd may allocate for the connection.
    let memoryBytes: Int
    /// The longest body.
    let bodyBytes: Int

    /// What the head of a response may take, of the same memory.
    var responseBytes: Int { max(512 + CommonFields.byteCount, memoryBytes / 8) }
  }

  /// Whether the method is HEAD, so that an answer has no body.
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
  /// What libmicrohttpd allocates beside the bytes themselves.
  private var recordBytes = 0

  init(limits: Limits) {
    self.limits = limits
  }

  /// Reads on. `bytes` are all since the head's beginning; white space behind a value is moved in front of it.
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

  /// What can be said while no further line has ended.
  private func rest(of bytes: UnsafeMutableRawBufferPointer) -> Progress {
    let memory = limits.memoryBytes
    guard bytes.count <= memory - limits.responseBytes else {
      return .refused(hasRequestLine ? .headersTooLarge(limit: memory) : .targetTooLong(limit: memory))
    }
    return hasRequestLine ? .incomplete : beginning(bytes[lines.position...].rebased)
  }

  /// What can be said of a first line that has not ended yet: what is not even a method is no HTTP, and nothing more
  /// is waited for.
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

  /// HTTP/1.0 and HTTP/1.1 are spoken here; other versions of the same form are refused as such.
  private mutating func version(_ text: UnsafeMutableRawBufferPointer) -> RequestFault? {
    guard text.count == 8, text[..<5].rebased.isExactly("HTTP/"), text[5].isDigit, text[6] == UInt8(ascii: "."),
      text[7].isDigit
    else { return .malformed(.requestLine) }
    isHTTP10 = text[7] == UInt8(ascii: "0")
    return text[5] == UInt8(ascii: "1") && text[7] <= UInt8(ascii: "1") ? nil : .unsupportedVersion
  }

  /// Whether it has one of the forms of RFC 9112 §3.2, but for that of CONNECT, which is not served.
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

  /// Looks at the fields that say where the request ends, and to whom it goes.
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
      // libmicrohttpd takes cookies apart, in a copy.
      let separators = value.count { $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: ",") }
      recordBytes += value.count + 16 + (separators + 1) * Self.fieldRecordBytes
    case 14 where name.isCaseless("content-length"):
      if contentLength != nil { return .malformed(.repeatedContentLength) }
      guard !value.isEmpty, value.allSatisfy(\.isDigit) else { return .malformed(.contentLength) }
      // What no number holds is too much, and not less of a length.
      contentLength = value.reduce(0) { $0 > Int.max / 10 - 1 ? Int.max : $0 * 10 + Int($1 - 48) }
    case 16 where name.isCaseless("content-encoding"):
      if !value.isEmpty, !value.isCaseless("identity") { hasContentCoding = true }
    case 17 where name.isCaseless("transfer-encoding"):
      // Several lines are one list (RFC 9110 §5.3), and a list of two is not `chunked`.
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
    // libmicrohttpd reads into one half of its memory, or more for a longer head, and has records in the rest.
    let memory = limits.memoryBytes
    let reading = max(memory / 2, byteCount + 256)
    guard recordBytes + reading <= memory, recordBytes + byteCount + limits.responseBytes <= memory else {
      return .headersTooLarge(limit: memory)
    }
    return nil
  }

  /// What libmicrohttpd allocates for a field or a cookie on a machine of 64 bits.
  private static let fieldRecordBytes = 64
}

/// A header or trailer line that has the form of one: a name, a colon right behind it, and a value (RFC 9112 §5).
struct FieldLine {
  let name: UnsafeMutableRawBufferPointer
  /// With the white space around it.
  let value: UnsafeMutableRawBufferPointer

  /// Takes a line that is not empty apart, or throws what is wrong with it.
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

  /// The value without the white space around it, after it was moved to the end of where it stands: libmicrohttpd skips
  /// the white space before a value, and takes what is behind it for a part of the value.
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

/// Takes lines off bytes that come piece by piece, all of them given each time.
struct LineReader {
  /// What comes next.
  enum Next {
    /// A line, without its end.
    case line(UnsafeMutableRawBufferPointer)
    /// A line feed without a carriage return before it.
    case malformed
    /// No line that is whole.
    case nothing
  }

  /// Where the first line begins that was not given yet.
  private(set) var position = 0
  private var searchStart = 0

  /// The next line of `bytes`.
  mutating func next(in bytes: UnsafeMutableRawBufferPointer) -> Next {
    guard searchStart < bytes.count, let base = bytes.baseAddress,
      let found = memchr(base + searchStart, Int32(UInt8.lineFeed), bytes.count - searchStart)
    else {
      searchStart = bytes.count
      return .nothing
    }
    let end = UnsafeRawPointer(found) - UnsafeRawPointer(base)
    guard end > position, bytes[end - 1] == .carriageReturn else { return .malformed }
    defer {
      position = end + 1
      searchStart = position
    }
    return .line(bytes[position..<(end - 1)].rebased)
  }
}

/// A set of ASCII characters, asked about one byte at a time.
struct ByteSet {
  private var low: UInt64 = 0
  private var high: UInt64 = 0

  /// The characters of a text, all of them ASCII.
  init(_ text: String) {
    for byte in text.utf8 {
      precondition(byte < 128)
      if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte - 64) }
    }
  }

  /// Whether a byte is one of the characters.
  func contains(_ byte: UInt8) -> Bool {
    (byte < 64 ? low >> UInt64(byte) : byte < 128 ? high >> UInt64(byte - 64) : 0) & 1 == 1
  }

  private static let alphanumerics = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  /// What a method and the name of a field are made of (RFC 9110 §5.6.2).
  static let token = ByteSet("!#$%&'*+-.^_`|~" + alphanumerics)
  /// What a `Host` is made of: a name or an address in brackets, with or without a port (RFC 3986 §3.2.2).
  fileprivate static let host = ByteSet("-._~!$&'()*+,;=%:[]" + alphanumerics)
}

extension UInt8 {
  /// White space within a line.
  fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 }

  /// Whether it may stand in the value of a field (RFC 9110 §5.5): no control character but the tab.
  var isFieldContent: Bool { self >= 0x20 && self != 0x7F || self == 0x09 }

  /// Whether it may stand in a request target; beyond ASCII only what is UTF-8 is taken.
  var isTargetContent: Bool { self > 0x20 && self != 0x7F && self != UInt8(ascii: "#") }

  fileprivate var isDigit: Bool { self >= UInt8(ascii: "0") && self <= UInt8(ascii: "9") }

  static let carriageReturn: UInt8 = 0x0D
  static let lineFeed: UInt8 = 0x0A
}

extension UnsafeMutableRawBufferPointer {
  /// Whether it is this text.
  fileprivate func isExactly(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return indices.allSatisfy { self[$0] == text.utf8Start[$0] }
  }

  /// Whether it is a text of lowercase ASCII letters and other characters, whatever the case of its letters.
  func isCaseless(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    for index in 0..<count {
      let byte = self[index]
      let lowered = byte >= 0x41 && byte <= 0x5A ? byte | 0x20 : byte
      if lowered != text.utf8Start[index] { return false }
    }
    return true
  }

  /// Whether it begins with such a text.
  fileprivate func beginsCaseless(_ text: StaticString) -> Bool {
    count >= text.utf8CodeUnitCount && self[..<text.utf8CodeUnitCount].rebased.isCaseless(text)
  }
}

extension Slice<UnsafeMutableRawBufferPointer> {
  /// The same memory, counted from 0.
  var rebased: UnsafeMutableRawBufferPointer { UnsafeMutableRawBufferPointer(rebasing: self) }
}

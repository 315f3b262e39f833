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

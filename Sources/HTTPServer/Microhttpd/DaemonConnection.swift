import CMicrohttpd
import Glibc
import HTTPTypes

/// A connection of libmicrohttpd. Use it on the connection's own thread, inside the calls that libmicrohttpd makes
/// there, and on any thread while the connection is suspended.
struct DaemonConnection {
  private let connection: OpaquePointer

  /// Wraps libmicrohttpd's pointer.
  init(_ connection: OpaquePointer) { self.connection = connection }

  /// libmicrohttpd's descriptor.
  var descriptor: Int32 { keyway_connection_socket(connection) }

  /// The daemon that serves it.
  var daemon: OpaquePointer? { keyway_connection_daemon(connection) }

  /// The server's own object, which libmicrohttpd keeps with the connection; nil if it was given none.
  var holder: Connection? {
    keyway_connection_context(connection).map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Makes libmicrohttpd ignore the connection until it is resumed.
  func suspend() { MHD_suspend_connection(connection) }

  /// Returns the connection to its thread, which calls the access handler again. Any thread.
  func resume() { MHD_resume_connection(connection) }

  /// True once the client has closed its side. Valid while the connection is open.
  var isClosedByPeer: Bool { peekByte(of: descriptor) == 0 }

  /// Queues a response with the ID of its request, on the connection's thread inside the access handler. `closes` ends
  /// the connection after it. Returns false if libmicrohttpd does not accept it.
  func queue(_ response: Response, id: RequestID?, closes: Bool) -> Bool {
    let made = response.file.map { $0.makeResponse() } ?? SentBody.makeResponse(of: response)
    guard let queueable = made else { return false }
    defer { MHD_destroy_response(queueable) }
    FieldLines(response.fields, id: id).add(to: queueable)
    if closes { MHD_add_response_header(queueable, "Connection", "close") }
    return MHD_queue_response(connection, UInt32(response.status.code), queueable) == .YES
  }

  // MARK: The header

  /// Reads all header lines once.
  func header() -> RequestHeader {
    var header = RequestHeader()
    withUnsafeMutablePointer(to: &header) {
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, noteHeader, $0)
    }
    return header
  }

  /// Returns a header field of the request by its lower-case name, with several lines joined by `fieldSeparator`; nil
  /// if there is none.
  func field(_ name: String) -> String? {
    var name = name
    return name.withUTF8 { name in
      var search = HeaderSearch(name: name, value: nil)
      withUnsafeMutablePointer(to: &search) {
        _ = MHD_get_connection_values_n(connection, .HEADER_KIND, collectHeader, $0)
      }
      return search.value
    }
  }
}

/// The parts of the request line that libmicrohttpd passes with every call; valid during the call.
struct RequestLine {
  private let methodName: UnsafePointer<CChar>
  private let versionName: UnsafePointer<CChar>?

  init(method: UnsafePointer<CChar>, version: UnsafePointer<CChar>?) {
    (methodName, versionName) = (method, version)
  }

  /// The method, without a new string for the common ones; nil if it is not a token.
  var method: HTTPRequest.Method? {
    switch methodName[0] {
    case Self.letter("G") where strcmp(methodName, "GET") == 0: return .get
    case Self.letter("P") where strcmp(methodName, "PATCH") == 0: return .patch
    case Self.letter("P") where strcmp(methodName, "PUT") == 0: return .put
    case Self.letter("P") where strcmp(methodName, "POST") == 0: return .post
    case Self.letter("D") where strcmp(methodName, "DELETE") == 0: return .delete
    case Self.letter("H") where strcmp(methodName, "HEAD") == 0: return .head
    case Self.letter("O") where strcmp(methodName, "OPTIONS") == 0: return .options
    default: return HTTPRequest.Method(String(cString: methodName))
    }
  }

  private static func letter(_ scalar: Unicode.Scalar) -> CChar { CChar(truncatingIfNeeded: scalar.value) }

  /// The version; HTTP/1.0 if none was given.
  var version: HTTPVersion {
    // "HTTP/1.x": only the last character matters.
    guard let versionName, versionName[0] != 0, String(cString: versionName) != "HTTP/1.0" else { return .http10 }
    return .http11
  }
}

/// The part of a request's header that decides whether its body is accepted, collected in one pass over the lines. The
/// `RequestGate` has ensured that they are well-formed.
struct RequestHeader {
  /// The declared length of the body.
  private(set) var contentLength: Int?
  /// The first fault found, if any.
  var fault: RequestFault?
  /// The ID that the client gave the request; nil if it sent none, an invalid one, or several.
  private(set) var requestID: RequestID?
  private var hasRequestID = false
  /// The fields that the request may have.
  private(set) var names = FieldNameFilter()

  init(contentLength: Int? = nil, fault: RequestFault? = nil) {
    self.contentLength = contentLength
    self.fault = fault
  }

  fileprivate mutating func note(_ name: UnsafeRawBufferPointer) { names.insert(name) }

  fileprivate mutating func noteRequestID(_ value: UnsafeRawBufferPointer) {
    requestID = hasRequestID ? nil : RequestID(sent: value)
    hasRequestID = true
  }

  fileprivate mutating func noteContentLength(_ value: UnsafeRawBufferPointer) {
    contentLength = value.reduce(0) { $0 > Int.max / 10 - 1 ? Int.max : $0 * 10 + Int($1 &- 48) }
  }
}

private func noteHeader(
  _ header: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameCount: Int,
  _ value: UnsafePointer<CChar>?, _ valueCount: Int
) -> MHD_Result {
  guard let header = header?.assumingMemoryBound(to: RequestHeader.self), let name else { return .YES }
  header.pointee.note(UnsafeRawBufferPointer(start: name, count: nameCount))
  if nameCount == 14, strncasecmp(name, "content-length", 14) == 0 {
    header.pointee.noteContentLength(UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount))
  } else if nameCount == 12, strncasecmp(name, RequestID.fieldName, 12) == 0 {
    header.pointee.noteRequestID(UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount))
  }
  return .YES
}

/// The names of the header fields that a request may have, in one word: a bit for the length of each name and its first
/// and last letter (a Bloom filter with one hash).
///
/// Most fields that a handler asks for were not sent. If the bit of a name is not set, the lines need not be searched.
struct FieldNameFilter: Equatable {
  private var bits: UInt64 = 0

  /// The filter of a request that may have any field.
  static let all = FieldNameFilter(bits: .max)

  /// Adds the name of a field that was sent.
  mutating func insert(_ name: UnsafeRawBufferPointer) {
    guard let first = name.first, let last = name.last else { return }
    bits |= Self.bit(count: name.count, first, last)
  }

  /// Returns true if a field of this name, ignoring case, may have been sent. False is certain.
  func mayContain(_ name: String) -> Bool {
    name.utf8.withContiguousStorageIfAvailable { name in
      guard let first = name.first, let last = name.last else { return false }
      return bits & Self.bit(count: name.count, first, last) != 0
    } ?? true
  }

  /// Letters differ from their other case in one bit alone (RFC 9110 §5.1: names are case-insensitive). The factors are
  /// chosen to separate the names that handlers ask for from those that every browser sends.
  private static func bit(count: Int, _ first: UInt8, _ last: UInt8) -> UInt64 {
    1 << UInt64(truncatingIfNeeded: (count &+ Int(first | 0x20) &* 5 &+ Int(last | 0x20) &* 19) & 63)
  }
}

/// A search for a field, with the value found so far.
private struct HeaderSearch {
  let name: UnsafeBufferPointer<UInt8>
  var value: String?
}

private func collectHeader(
  _ search: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameCount: Int,
  _ value: UnsafePointer<CChar>?, _ valueCount: Int
) -> MHD_Result {
  guard let search = search?.assumingMemoryBound(to: HeaderSearch.self), let name,
    nameCount == search.pointee.name.count, let wanted = search.pointee.name.baseAddress,
    strncasecmp(name, wanted, nameCount) == 0
  else { return .YES }
  let text = value.map { String(decoding: UnsafeRawBufferPointer(start: $0, count: valueCount), as: UTF8.self) } ?? ""
  search.pointee.value =
    search.pointee.value.map { value in
      value + fieldSeparator(String(decoding: search.pointee.name, as: UTF8.self)) + text
    } ?? text
  return .YES
}

/// Returns the text between the values of several lines of a field: a comma (RFC 9110 §5.3), except for `Cookie`, whose
/// pairs are separated by semicolons (RFC 6265 §4.2.1).
func fieldSeparator(_ name: some StringProtocol) -> String { name == "cookie" ? "; " : ", " }

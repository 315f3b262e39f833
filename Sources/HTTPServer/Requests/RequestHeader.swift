import CMicrohttpd
import Glibc

/// What has to be known of a request's header before its body is let in: gathered in one pass over the lines. That they
/// are well-formed, the `RequestGate` has seen to.
struct RequestHeader {
  /// The declared length of the body.
  private(set) var contentLength: Int?
  /// What is wrong already.
  var fault: RequestFault?
  /// The id that the client gave the request; nil where it gave none, none that is one, or several.
  private(set) var requestID: RequestID?
  private var hasRequestID = false
  /// Which fields it may have.
  private(set) var names = FieldNameFilter()

  init(contentLength: Int? = nil, fault: RequestFault? = nil) {
    self.contentLength = contentLength
    self.fault = fault
  }

  /// Reads the header lines of a connection; only its own thread may ask, inside the access handler.
  init(of connection: OpaquePointer) {
    withUnsafeMutablePointer(to: &self) {
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, noteHeader, $0)
    }
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

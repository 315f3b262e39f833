import CMicrohttpd
import Glibc

/// What has to be known of a request's header before its body is let in: gathered in one pass over the lines.
struct RequestHeader {
  /// The declared length of the body.
  private(set) var contentLength: Int?
  /// What is wrong already.
  var fault: RequestFault?
  /// The id that the client gave the request; nil where it gave none, none that is one, or several.
  private(set) var requestID: RequestID?
  private var hasTransferEncoding = false
  private var hasRequestID = false

  init(contentLength: Int? = nil, fault: RequestFault? = nil) {
    self.contentLength = contentLength
    self.fault = fault
  }

  /// Reads the header lines of a connection; only its own thread may ask, inside the access handler.
  init(of connection: OpaquePointer, memoryLimit: Int) {
    withUnsafeMutablePointer(to: &self) {
      _ = MHD_get_connection_values_n(connection, .HEADER_KIND, noteHeader, $0)
    }
    // Half a kilobyte is what the rest of the head of a response takes, and it comes from the same memory.
    if keyway_header_bytes(connection) > memoryLimit - 512 - CommonFields.byteCount {
      fault = fault ?? .headersTooLarge(limit: memoryLimit)
    }
  }

  fileprivate mutating func noteContentLength(_ value: UnsafeBufferPointer<UInt8>) {
    var length = 0
    var isNumber = !value.isEmpty
    for byte in value where isNumber {
      isNumber = byte >= 48 && byte <= 57
      // A length that no number holds is too large, and not less of a length.
      length = length > Int.max / 10 - 1 ? Int.max : length * 10 + (Int(byte) - 48)
    }
    if !isNumber || contentLength != nil || hasTransferEncoding { fault = .ambiguousLength }
    contentLength = isNumber ? length : 0
  }

  fileprivate mutating func noteRequestID(_ value: UnsafeRawBufferPointer) {
    requestID = hasRequestID ? nil : RequestID(sent: value)
    hasRequestID = true
  }

  fileprivate mutating func noteTransferEncoding() {
    if contentLength != nil || hasTransferEncoding { fault = .ambiguousLength }
    hasTransferEncoding = true
  }
}

private func noteHeader(
  _ header: UnsafeMutableRawPointer?, _ kind: MHD_ValueKind, _ name: UnsafePointer<CChar>?, _ nameCount: Int,
  _ value: UnsafePointer<CChar>?, _ valueCount: Int
) -> MHD_Result {
  guard let header = header?.assumingMemoryBound(to: RequestHeader.self), let name else { return .YES }
  if nameCount == 14, strncasecmp(name, "content-length", 14) == 0 {
    UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount)
      .withMemoryRebound(to: UInt8.self) { header.pointee.noteContentLength($0) }
  } else if nameCount == 17, strncasecmp(name, "transfer-encoding", 17) == 0 {
    header.pointee.noteTransferEncoding()
  } else if nameCount == 12, strncasecmp(name, RequestID.fieldName, 12) == 0 {
    header.pointee.noteRequestID(UnsafeRawBufferPointer(start: value, count: value == nil ? 0 : valueCount))
  }
  return .YES
}

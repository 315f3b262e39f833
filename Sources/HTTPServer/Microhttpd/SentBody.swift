import CMicrohttpd
import Glibc

/// The body of a response while libmicrohttpd sends it, with the memory reservation of its client.
final class SentBody {
  private let bytes: [UInt8]
  private let memory: MemoryReservation?

  private init(_ response: Response) {
    bytes = response.body
    memory = response.memory
  }

  /// Returns a response of libmicrohttpd with this body, which the caller destroys; nil if there is no memory for it.
  ///
  /// A small body is copied, which costs less than a callback. A large one stays in place. Its pointer is valid beyond
  /// `withUnsafeBytes` because an array of bytes is one block of the heap behind a reference, which stays in place
  /// until it is changed or released: `bytes` is constant, and the object keeps it until libmicrohttpd releases it.
  static func makeResponse(of response: Response) -> OpaquePointer? {
    if let count = response.withheldCount {
      return MHD_create_response_from_callback(UInt64(count), 1, readNothing, nil, nil)
    }
    guard response.body.count > MemoryLedger.uncountedBytes else {
      return response.body.withUnsafeBytes { bytes in
        MHD_create_response_from_buffer(
          bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
      }
    }
    let body = SentBody(response)
    let opaque = Unmanaged.passRetained(body).toOpaque()
    let queueable = body.bytes.withUnsafeBytes { bytes in
      MHD_create_response_from_buffer_with_free_callback_cls(
        bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), releaseSentBody, opaque)
    }
    if queueable == nil { releaseSentBody(opaque) }
    return queueable
  }
}

/// Serves as the required content reader of a withheld body, which is never read. Returns
/// `MHD_CONTENT_READER_END_WITH_ERROR`, a macro with a cast, which Swift does not import.
private func readNothing(
  _ context: UnsafeMutableRawPointer?, _ position: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int
) -> Int { -2 }

/// Releases the body once libmicrohttpd has sent it, or its client is gone. Called on any of its threads.
private func releaseSentBody(_ body: UnsafeMutableRawPointer?) {
  if let body { Unmanaged<SentBody>.fromOpaque(body).release() }
}

/// A part of an open file as the content of a response, which the kernel sends without the process reading it.
package final class FileContent: Sendable {
  /// The number of bytes that are sent.
  package let count: Int
  /// The offset of the first byte.
  private let offset: UInt64
  private let descriptor: Int32
  /// The lease that is returned when the response has been sent.
  let lease: OpenFiles.Lease

  /// Creates the content from `count` bytes of a regular file at `offset`, which must exist now. Takes ownership of the
  /// descriptor.
  package init(descriptor: Int32, offset: Int, count: Int, lease: OpenFiles.Lease) {
    self.descriptor = descriptor
    self.offset = UInt64(offset)
    self.count = count
    self.lease = lease
  }

  deinit { close(descriptor) }

  /// Returns a response of libmicrohttpd with this content, which the caller destroys; nil if there is no descriptor or
  /// memory for it. If the file is truncated in the meantime, libmicrohttpd closes the connection.
  func makeResponse() -> OpaquePointer? {
    let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { return nil }
    // libmicrohttpd closes the descriptor with the response.
    guard let response = MHD_create_response_from_fd_at_offset64(UInt64(count), duplicate, offset) else {
      close(duplicate)
      return nil
    }
    return response
  }
}

import CMicrohttpd
import Glibc

/// A part of an open file as the content of a response, which the kernel sends without the process reading it.
package final class FileContent: Sendable {
  /// How many bytes of the file are sent.
  package let count: Int
  /// The first of them.
  private let offset: UInt64
  private let descriptor: Int32
  /// What is given back when the response has been sent.
  let lease: OpenFiles.Lease

  /// The bytes of a regular file, of `count` bytes from `offset` on, which must be there now. The descriptor is taken.
  package init(descriptor: Int32, offset: Int, count: Int, lease: OpenFiles.Lease) {
    self.descriptor = descriptor
    self.offset = UInt64(offset)
    self.count = count
    self.lease = lease
  }

  deinit { close(descriptor) }

  /// A response of libmicrohttpd with this content, to be destroyed by the caller; nil where there is no descriptor or
  /// memory for it. If the file is cut short meanwhile, libmicrohttpd closes the connection.
  func makeResponse() -> OpaquePointer? {
    let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { return nil }
    // It closes the descriptor with the response.
    guard let response = MHD_create_response_from_fd_at_offset64(UInt64(count), duplicate, offset) else {
      close(duplicate)
      return nil
    }
    return response
  }
}

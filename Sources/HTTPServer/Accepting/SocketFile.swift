import Glibc

/// The file of a socket of this machine (unix(7)) that is listened on.
package final class SocketFile: Sendable {
  /// What stands in front of the path where a host could stand.
  private static let prefix = "unix:"
  /// Who may connect: the owner and the group.
  private static let mode: mode_t = 0o660

  private let path: String
  private let device: dev_t
  private let inode: ino_t

  private init(path: String, _ status: stat) {
    self.path = path
    device = status.st_dev
    inode = status.st_ino
  }

  /// The path that a host such as `unix:/run/keyway.sock` names; nil for what is a host.
  package static func path(ofHost host: String) -> String? {
    host.hasPrefix(prefix) ? String(host.dropFirst(prefix.count)) : nil
  }

  /// A socket that listens under a path, and its file. One that no process listens on any more is replaced. Throws
  /// `cannotListenAt` where one does, and where anything else has the path.
  static func listen(at path: String) throws(HTTPServerError) -> (descriptor: Int32, file: SocketFile) {
    guard let address = address(of: path) else {
      throw .cannotListenAt(path: path, reason: "a path of 1 to \(maximumPathBytes) bytes follows 'unix:'")
    }
    try removeStale(path, address)
    let flags = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let descriptor = socket(AF_UNIX, flags, 0)
    guard descriptor >= 0 else { throw failure(path) }
    guard call(bind, descriptor, address) == 0 else {
      let failure = failure(path)
      close(descriptor)
      throw failure
    }
    var status = stat()
    // Before it listens, so that nobody connects who must not.
    guard chmod(path, mode) == 0, lstat(path, &status) == 0, Glibc.listen(descriptor, 16_384) == 0 else {
      let failure = failure(path)
      close(descriptor)
      unlink(path)
      throw failure
    }
    return (descriptor, SocketFile(path: path, status))
  }

  /// Removes the file, unless another has taken its place.
  func remove() {
    var status = stat()
    guard lstat(path, &status) == 0, status.st_dev == device, status.st_ino == inode else { return }
    unlink(path)
  }

  /// Makes room where a process has left its socket behind.
  private static func removeStale(_ path: String, _ address: sockaddr_un) throws(HTTPServerError) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw .cannotListenAt(path: path, reason: "there is a file already, and it is no socket")
    }
    let probe = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard probe >= 0 else { throw failure(path) }
    defer { close(probe) }
    // Only this says that there is no process behind it.
    guard call(connect, probe, address) != 0, errno == ECONNREFUSED else {
      throw .cannotListenAt(path: path, reason: "another process listens there")
    }
    guard unlink(path) == 0 || errno == ENOENT else { throw failure(path) }
  }

  private static func failure(_ path: String) -> HTTPServerError {
    .cannotListenAt(path: path, reason: String(cString: strerror(errno)))
  }

  // MARK: Addresses

  /// The kernel wants a zero behind it.
  private static let maximumPathBytes = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1

  private static func address(of path: String) -> sockaddr_un? {
    guard !path.isEmpty, path.utf8.count <= maximumPathBytes, !path.utf8.contains(0) else { return nil }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    return address
  }

  private static func call(
    _ function: (Int32, UnsafePointer<sockaddr>?, socklen_t) -> Int32, _ descriptor: Int32, _ address: sockaddr_un
  ) -> Int32 {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        function(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}

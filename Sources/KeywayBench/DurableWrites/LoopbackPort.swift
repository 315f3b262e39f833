import Glibc

/// Ports of the loopback address.
enum LoopbackPort {
  /// A port that nobody uses now. Somebody may take it before the server does for which it is meant; that server then
  /// ends, and the benchmark with it.
  static func free() throws(FanoutError) -> Int {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard descriptor >= 0 else { throw FanoutError(call: "socket") }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { socketAddress in
        bind(descriptor, socketAddress, length) == 0 && getsockname(descriptor, socketAddress, &length) == 0
      }
    }
    guard result else { throw FanoutError(call: "bind") }
    return Int(UInt16(bigEndian: address.sin_port))
  }
}

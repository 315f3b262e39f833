import Foundation
import Glibc

/// The address of a server over plain TCP, resolved once.
struct SocketAddress: Hashable, Sendable {
  /// The value of the `Host` header field.
  let hostField: String
  private let family: Int32
  private let bytes: [UInt8]

  /// The address of `http://host[:port]`.
  init(server: String) throws(FanoutError) {
    guard let url = URL(string: server), url.scheme == "http", let host = url.host, !host.isEmpty else {
      throw FanoutError("\(server) is not of the form http://host:port, which is all that a benchmark speaks")
    }
    let port = url.port ?? 80
    let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    hostField = (name.contains(":") ? "[\(name)]" : name) + ":\(port)"
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, String(port), &hints, &list) == 0, let first = list?.pointee, let address = first.ai_addr
    else { throw FanoutError("there is no host \(name)") }
    defer { freeaddrinfo(list) }
    family = first.ai_family
    bytes = [UInt8](UnsafeRawBufferPointer(start: address, count: Int(first.ai_addrlen)))
  }

  /// A socket that is connected, or, where it is not to block, about to be. `receiveBufferBytes` is what the kernel may
  /// keep that was not read; nil for what it likes.
  func connect(isBlocking: Bool, receiveBufferBytes: Int32? = nil) throws(FanoutError) -> Int32 {
    let kind = Int32(SOCK_STREAM.rawValue) | (isBlocking ? 0 : Int32(SOCK_NONBLOCK.rawValue))
    let descriptor = socket(family, kind, 0)
    guard descriptor >= 0 else { throw FanoutError(call: "socket") }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    if var receiveBufferBytes {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBufferBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    let result = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: sockaddr.self) { Glibc.connect(descriptor, $0.baseAddress, socklen_t(raw.count)) }
    }
    guard result == 0 || errno == EINPROGRESS else {
      let error = FanoutError(call: "connect to \(hostField)")
      close(descriptor)
      throw error
    }
    return descriptor
  }
}

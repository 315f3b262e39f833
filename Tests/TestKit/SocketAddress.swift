import Foundation
import Glibc

/// The address of a server over plain TCP, resolved once, with the client's token and source address.
package struct SocketAddress: Hashable, Sendable {
  /// The value of the `Host` header field.
  package let hostField: String
  /// The token that every request to it carries; nil for none.
  package var token: String?
  private let family: Int32
  private let bytes: [UInt8]
  /// The address of this machine that connections come from; nil for the kernel's choice.
  private var source: in_addr_t?

  /// Creates the address of a port of this machine, by default on 127.0.0.1. Connections come from `source`, such as
  /// 127.0.0.2: to the server, another client.
  package init(port: UInt16, from source: String? = nil, to destination: String = "127.0.0.1") {
    self.source = source.map { inet_addr($0) }
    hostField = "127.0.0.1:\(port)"
    family = AF_INET
    var address = sockaddr_in(loopbackPort: port)
    address.sin_addr.s_addr = inet_addr(destination)
    bytes = withUnsafeBytes(of: address) { Array($0) }
  }

  /// Creates the address of a Unix-domain socket.
  package init(path: String) {
    hostField = "localhost"
    family = AF_UNIX
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    bytes = withUnsafeBytes(of: address) { Array($0) }
  }

  /// Creates the address of `http://host[:port]`. Throws if it has another form, or the host cannot be resolved.
  package init(server: String) throws(LoopbackError) {
    guard let url = URL(string: server), url.scheme == "http", let host = url.host, !host.isEmpty else {
      throw LoopbackError("\(server) is not of the form http://host:port, which is all that a benchmark speaks")
    }
    let port = url.port ?? 80
    let name = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    hostField = (name.contains(":") ? "[\(name)]" : name) + ":\(port)"
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(name, String(port), &hints, &list) == 0, let first = list?.pointee, let address = first.ai_addr
    else { throw LoopbackError("there is no host \(name)") }
    defer { freeaddrinfo(list) }
    family = first.ai_family
    bytes = [UInt8](UnsafeRawBufferPointer(start: address, count: Int(first.ai_addrlen)))
  }

  /// Returns a socket that is connected, or, without blocking, connecting. The caller closes it. `receiveBufferBytes`
  /// is the size of the kernel's receive buffer; nil for the kernel's choice.
  package func connect(
    isBlocking: Bool = true, receiveBufferBytes: Int32? = nil
  ) throws(LoopbackError) -> Int32 {
    let flags = Int32(SOCK_CLOEXEC.rawValue) | (isBlocking ? 0 : Int32(SOCK_NONBLOCK.rawValue))
    let descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | flags, 0)
    guard descriptor >= 0 else { throw LoopbackError(call: "socket") }
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    if var receiveBufferBytes {
      setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBufferBytes, socklen_t(MemoryLayout<Int32>.size))
    }
    if let source { Self.bind(descriptor, to: source) }
    let result = bytes.withUnsafeBytes { raw in
      raw.withMemoryRebound(to: sockaddr.self) { Glibc.connect(descriptor, $0.baseAddress, socklen_t(raw.count)) }
    }
    guard result == 0 || errno == EINPROGRESS else {
      let error = LoopbackError(call: "connect to \(hostField)", .connectionRefused)
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// Binds a socket to a source address. If that fails, connecting fails too, or uses an address of the kernel's
  /// choice.
  private static func bind(_ descriptor: Int32, to source: in_addr_t) {
    // Without this option each connection would reserve a port of the source address, which has too few.
    var one: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_IP), IP_BIND_ADDRESS_NO_PORT, &one, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = source
    let size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafePointer(to: &address) { pointer in
      _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.bind(descriptor, $0, size) }
    }
  }
}

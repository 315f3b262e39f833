import CMicrohttpd
import Glibc

/// A connection that the kernel has accepted, on its way to a thread of libmicrohttpd.
struct AcceptedConnection: Sendable {
  /// Its descriptor, which the holder of this value closes or hands on.
  let descriptor: Int32
  /// Its place among the connections that may be open.
  let slot: ConnectionSlot
  /// The address of the other side, as the kernel writes it.
  let peer: sockaddr_storage
  /// How many bytes of `peer` are meant.
  let peerLength: socklen_t

  /// Has a daemon of libmicrohttpd serve it from now on, and close it. Any thread, also one that this daemon calls.
  func begin(on daemon: OpaquePointer) {
    var peer = peer
    _ = withUnsafePointer(to: &peer) { peer in
      peer.withMemoryRebound(to: sockaddr.self, capacity: 1) { MHD_add_connection(daemon, descriptor, $0, peerLength) }
    }
  }
}

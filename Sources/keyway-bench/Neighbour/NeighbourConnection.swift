import Glibc
import TestKit

/// A connection whose answers are read and thrown away, however long they are.
final class NeighbourConnection {
  private static let maximumHeadBytes = 65_536
  /// What of a request may wait in the kernel on the neighbour's side. It is the memory of the machine that the server
  /// runs on as well, of which a neighbour elsewhere has none.
  private static let sendBufferBytes: Int32 = 65_536

  private let socket: WireSocket
  private let address: SocketAddress

  init(_ address: SocketAddress, receiveBufferBytes: Int32? = nil) throws {
    socket = try WireSocket(address, receiveBufferBytes: receiveBufferBytes)
    var size = Self.sendBufferBytes
    setsockopt(socket.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    self.address = address
  }

  /// Sends bytes.
  func send(_ bytes: [UInt8], before deadline: Deadline) throws {
    try socket.send(bytes, before: deadline)
  }

  /// Sends a request and gives the status of its answer, once all of that has come. Gives up when `isOver`.
  func exchange(_ request: WireRequest, before deadline: Deadline, isOver: () -> Bool) throws -> Int {
    var request = request
    request.headers["Connection"] = "close"
    try send(Array(request.text(to: address).utf8), before: deadline)
    let status = try status(before: deadline, isOver: isOver)
    while try !receive(before: deadline, isOver).isEmpty {}
    return status
  }

  /// The status of the next answer, of which no more than the head and what came with it has been read.
  func status(before deadline: Deadline, isOver: () -> Bool) throws -> Int {
    var head: [UInt8] = []
    while true {
      let bytes = try receive(before: deadline, isOver)
      guard !bytes.isEmpty, head.count < Self.maximumHeadBytes else { throw LoopbackError(.connectionClosed) }
      head += bytes
      guard let response = WireResponse(head: head.prefix(32)) ?? nil else { continue }
      return response.status
    }
  }

  /// A descriptor of the connection that keeps it open, for the caller to close; nil where there is none left.
  func kept() -> Int32? {
    let descriptor = fcntl(socket.descriptor, F_DUPFD_CLOEXEC, 0)
    return descriptor >= 0 ? descriptor : nil
  }

  /// Closes a descriptor with a reset, so that no port stays taken.
  static func reset(_ descriptor: Int32) {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
  }

  private func receive(before deadline: Deadline, _ isOver: () -> Bool) throws -> [UInt8] {
    while true {
      do {
        return try socket.receive(before: Deadline(seconds: 0.2), atMost: 262_144)
      } catch {
        guard error.reason == .timedOut, !deadline.hasPassed, !isOver() else { throw error }
      }
    }
  }
}

import KeywayServer
package import Outbound

/// A client for requests to one other node, over plain HTTP or TLS, depending on its address. Any thread may call it;
/// each call blocks until its answer arrives.
package final class NodeClient: Sendable {
  /// The address of the other node.
  package let address: NodeAddress
  private let link: any NodeLink

  /// The default time limit for making a new connection.
  package static let connectTime = Duration.seconds(2)

  /// Creates a client that keeps at most `idleLimit` idle connections and spends at most `connectTime` on making a new
  /// one. Requests to an `https` address go through `outbound`.
  package init(
    _ address: NodeAddress, keeping idleLimit: Int, connecting connectTime: Duration = NodeClient.connectTime,
    by outbound: OutboundClient
  ) {
    self.address = address
    link =
      address.isSecure
      ? SecureLink(address, connecting: connectTime, by: outbound)
      : PlainLink(address, keeping: idleLimit, connecting: connectTime)
  }

  deinit { link.cut() }

  /// Sends a request and returns its answer, whose body has at most `limit` bytes. Throws if no part of the answer
  /// arrives for `silence`.
  func send(_ request: NodeRequest, silence: Duration, limit: Int) throws(NodeFault) -> NodeAnswer {
    var body: [UInt8] = []
    var answer = try send(request, silence: silence) { piece throws(NodeFault) in
      guard body.count + piece.count <= limit else { throw NodeFault("the answer has more than \(limit) bytes") }
      body.append(contentsOf: piece)
    }
    answer.body = body
    return answer
  }

  /// Sends a request and returns its answer. Passes the content to `receive` as it arrives.
  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    try link.send(request, silence: silence, receive)
  }

  /// Sends an idempotent request and returns its answer. Sends it once more if the connection is lost, for example
  /// because a kept connection was closed meanwhile.
  func sendRepeatable(_ request: NodeRequest, silence: Duration, limit: Int) throws(NodeFault) -> NodeAnswer {
    do throws(NodeFault) {
      return try send(request, silence: silence, limit: limit)
    } catch {
      guard !error.isSilence, !error.isUnsent else { throw error }
      return try send(request, silence: silence, limit: limit)
    }
  }

  /// Sends a request and returns its answer: with its events if it is an event stream, otherwise complete, with a body
  /// of at most `limit` bytes.
  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?) {
    try link.open(request, silence: silence, limit: limit)
  }

  /// Cancels all requests under way. Later requests fail.
  package func cut() { link.cut() }
}

/// A transport for requests to one other node. Any thread may call it; each call blocks until its answer arrives.
protocol NodeLink: Sendable {
  /// Sends a request and returns its answer. Passes the content to `receive` as it arrives. Throws if no part of the
  /// answer arrives for `silence`.
  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer

  /// Sends a request and returns its answer: with its events if it is an event stream, otherwise complete, with a body
  /// of at most `limit` bytes.
  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?)

  /// Cancels all requests under way, but not the streams that were opened. Later requests fail.
  func cut()
}

/// The events of another node's stream, as they arrive. One thread at a time reads. The connection is closed when the
/// last reference to the stream goes.
protocol NodeStream: Sendable {
  /// The descriptor to poll for input. It is readable when data has arrived or the stream has ended.
  var descriptor: Int32 { get }

  /// True once everything was received and no more data can arrive.
  var isFinished: Bool { get }

  /// Waits for content and returns it; empty at the end of the stream.
  func receive(before deadline: ContinuousClock.Instant) throws(NodeFault) -> [UInt8]

  /// Returns the content that has arrived so far, without waiting: empty at the end of the stream, nil if nothing has
  /// arrived.
  func receiveNow() throws(NodeFault) -> [UInt8]?
}

/// The reason why a request to another node failed.
package struct NodeFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// A description of the failure.
  package let reason: String
  /// True if the other node has certainly not received the whole request, so that nothing was carried out.
  package let isUnsent: Bool
  /// True if the other node was reached and did not answer in time. It may be running, but slow.
  package let isSilence: Bool

  /// Creates a fault; by default one after which the request may have been received.
  package init(_ reason: String, isUnsent: Bool = false, isSilence: Bool = false) {
    self.reason = reason
    self.isUnsent = isUnsent
    self.isSilence = isSilence
  }

  /// The reason.
  package var description: String { reason }
}

import KeywayServer
package import Outbound

/// A client for requests to one other node, over plain HTTP or TLS as its address says. Any thread; each waits for its
/// answer.
package final class NodeClient: Sendable {
  /// The address of the other node.
  package let address: NodeAddress
  private let link: any NodeLink

  /// The time that a new connection is waited for.
  package static let connectTime = Duration.seconds(2)

  /// Makes a client that keeps at most `idleLimit` connections, and waits at most `connectTime` for a new one. Requests
  /// to an `https` address go through `outbound`.
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

  /// Returns the answer to a request, of at most `limit` bytes, every part of which comes within `silence`.
  func send(_ request: NodeRequest, silence: Duration, limit: Int) throws(NodeFault) -> NodeAnswer {
    var body: [UInt8] = []
    var answer = try send(request, silence: silence) { piece throws(NodeFault) in
      guard body.count + piece.count <= limit else { throw NodeFault("the answer has more than \(limit) bytes") }
      body.append(contentsOf: piece)
    }
    answer.body = body
    return answer
  }

  /// Returns the answer to a request, whose content is given to `receive` as it comes.
  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    try link.send(request, silence: silence, receive)
  }

  /// Returns the answer to a request that does the second time what it does the first: it is sent once more if the
  /// connection, perhaps a kept one that was closed meanwhile, is lost.
  func sendRepeatable(_ request: NodeRequest, silence: Duration, limit: Int) throws(NodeFault) -> NodeAnswer {
    do throws(NodeFault) {
      return try send(request, silence: silence, limit: limit)
    } catch {
      guard !error.isSilence, !error.isUnsent else { throw error }
      return try send(request, silence: silence, limit: limit)
    }
  }

  /// Returns the answer to a request: with the events that follow it if it is a stream of them, else whole, of at most
  /// `limit` bytes.
  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?) {
    try link.open(request, silence: silence, limit: limit)
  }

  /// Ends all requests under way; those that are sent from now on fail.
  package func cut() { link.cut() }
}

/// The way by which requests reach one other node. Any thread; each waits for its answer.
protocol NodeLink: Sendable {
  /// Returns the answer to a request, every part of which comes within `silence`; its content is given to `receive` as
  /// it comes.
  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer

  /// Returns the answer to a request: with the events that follow it if it is a stream of them, else whole, of at most
  /// `limit` bytes.
  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?)

  /// Ends all requests under way, but not the streams that were opened; requests fail from now on.
  func cut()
}

/// The events of another node's stream, as they come. One thread at a time reads; when nothing refers to it any more,
/// its connection is closed.
protocol NodeStream: Sendable {
  /// The descriptor to poll for input: it is readable when something has come, or the stream has ended.
  var descriptor: Int32 { get }

  /// True once everything was received and nothing more comes.
  var isFinished: Bool { get }

  /// Waits for content, and returns it; empty at the end.
  func receive(before deadline: ContinuousClock.Instant) throws(NodeFault) -> [UInt8]

  /// Returns the content that has come; empty at the end, nil if nothing came.
  func receiveNow() throws(NodeFault) -> [UInt8]?
}

/// Why another node gave no answer.
package struct NodeFault: Error, Hashable, Sendable, CustomStringConvertible {
  /// What happened, in words.
  package let reason: String
  /// Whether the other node has certainly not received the request whole, so that nothing was carried out.
  package let isUnsent: Bool
  /// Whether the other node was reached, and said nothing in time: it may be there, and slow.
  package let isSilence: Bool

  /// A fault, by default after the request may have been received.
  package init(_ reason: String, isUnsent: Bool = false, isSilence: Bool = false) {
    self.reason = reason
    self.isUnsent = isUnsent
    self.isSilence = isSilence
  }

  /// The reason.
  package var description: String { reason }
}

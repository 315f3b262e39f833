import HTTPServer
import KeywayServer
import Outbound
import Support

/// A transport to a node over TLS, through the client for outbound requests.
final class SecureLink: NodeLink {
  private struct State {
    /// The requests that wait for their answer.
    var waiting: [ObjectIdentifier: OutboundTransfer] = [:]
    var isCut = false
  }

  private let address: NodeAddress
  private let connectTime: Duration
  private let outbound: OutboundClient
  private let state = Locked(State())

  /// Creates a link to an `https` address.
  init(_ address: NodeAddress, connecting connectTime: Duration, by outbound: OutboundClient) {
    (self.address, self.connectTime, self.outbound) = (address, connectTime, outbound)
  }

  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    let transfer = try begin(request)
    defer { end(transfer) }
    let answer = try head(of: transfer, silence)
    try content(of: transfer, answer, request.method, silence, receive)
    return answer
  }

  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?) {
    let transfer = try begin(request)
    defer { end(transfer) }
    var answer = try head(of: transfer, silence)
    if answer.status == 200, answer.isEventStream {
      guard let stream = SecureStream(transfer, address) else {
        throw NodeFault(
          "no descriptor is left for a stream of \(address): raise the limit of the process (ulimit -n)")
      }
      return (answer, stream)
    }
    var body: [UInt8] = []
    try content(of: transfer, answer, request.method, silence) { piece throws(NodeFault) in
      guard body.count + piece.count <= limit else { throw NodeFault("the answer has more than \(limit) bytes") }
      body.append(contentsOf: piece)
    }
    answer.body = body
    return (answer, nil)
  }

  func cut() {
    let transfers = state.withLock { state in
      defer { (state.waiting, state.isCut) = ([:], true) }
      return Array(state.waiting.values)
    }
    for transfer in transfers { transfer.cancel() }
  }

  private func begin(_ request: NodeRequest) throws(NodeFault) -> OutboundTransfer {
    var outgoing = OutboundRequest(request.method, "https://\(address.authority)", request.target)
    outgoing.fields = request.fields
    outgoing.body = request.body
    outgoing.connectTime = connectTime
    let transfer: OutboundTransfer
    do throws(OutboundFault) {
      transfer = try outbound.open(outgoing)
    } catch {
      throw NodeFault(error, of: address)
    }
    let isCut = state.withLock { state in
      if !state.isCut { state.waiting[ObjectIdentifier(transfer)] = transfer }
      return state.isCut
    }
    guard isCut else { return transfer }
    transfer.cancel()
    throw NodeFault("this node is about to stop", isUnsent: true)
  }

  private func end(_ transfer: OutboundTransfer) {
    state.withLock { $0.waiting[ObjectIdentifier(transfer)] = nil }
  }

  private func head(of transfer: OutboundTransfer, _ silence: Duration) throws(NodeFault) -> NodeAnswer {
    do throws(OutboundFault) {
      let head = try transfer.head(before: .now + silence)
      return NodeAnswer(status: head.status, fields: head.fields)
    } catch {
      throw NodeFault(error, of: address)
    }
  }

  private func content(
    of transfer: OutboundTransfer, _ answer: NodeAnswer, _ method: String, _ silence: Duration,
    _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) {
    // Without a length, a truncated answer looks complete.
    let hasNone = method == "HEAD" || answer.status == 204 || answer.status == 304
    guard hasNone || answer["Content-Length"] != nil || answer["Transfer-Encoding"] != nil else {
      throw NodeFault("the answer does not state its length")
    }
    while true {
      let piece: [UInt8]
      do throws(OutboundFault) {
        piece = try transfer.content(before: .now + silence)
      } catch {
        throw NodeFault(error, of: address)
      }
      if piece.isEmpty { return }
      try receive(piece[...])
    }
  }
}

/// The events of a stream that arrives over TLS.
private final class SecureStream: NodeStream {
  private let transfer: OutboundTransfer
  private let address: NodeAddress
  private let wake: WakeDescriptor

  /// Creates the stream of a transfer. Returns nil if the system has no descriptor left.
  init?(_ transfer: OutboundTransfer, _ address: NodeAddress) {
    guard let wake = WakeDescriptor() else { return nil }
    (self.transfer, self.address, self.wake) = (transfer, address, wake)
    transfer.whenReadable { wake.wake() }
  }

  var descriptor: Int32 { wake.descriptor }

  var isFinished: Bool { transfer.isFinished }

  func receive(before deadline: ContinuousClock.Instant) throws(NodeFault) -> [UInt8] {
    do throws(OutboundFault) {
      return try transfer.content(before: deadline)
    } catch {
      throw NodeFault(error, of: address)
    }
  }

  func receiveNow() throws(NodeFault) -> [UInt8]? {
    // Reset before reading: data that arrives later wakes the reader again.
    wake.reset()
    do throws(OutboundFault) {
      return try transfer.contentNow()
    } catch {
      throw NodeFault(error, of: address)
    }
  }
}

extension NodeFault {
  /// Creates the fault of a request to a node over TLS.
  fileprivate init(_ fault: OutboundFault, of address: NodeAddress) {
    switch fault.kind {
    case .unreachable, .untrusted: self.init("\(address) cannot be reached: \(fault.reason)", isUnsent: true)
    default: self.init(fault.reason, isUnsent: fault.isUnsent, isSilence: fault.kind == .timeout)
    }
  }
}

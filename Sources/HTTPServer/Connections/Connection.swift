import CSocketCalls
import Glibc
import Support
import Synchronization

/// The state of one TCP connection of libmicrohttpd, from accepting to closing: one object, reused for every request on
/// it.
///
/// `@unchecked Sendable`: `exchange`, `target`, `fieldNames`, `requestID`, `address`, `isForwardedOverTLS`, `network`,
/// `client`, `access`, `body`, `deferredResponse`, `fileLease`, `gate`, `hasCompany` and `isRequestUnderWay` belong to
/// the one libmicrohttpd thread of the connection; `registryIndex` is guarded by the registry's lock; the rest is
/// constant or atomic.
final class Connection: RequestHolder, @unchecked Sendable {
  /// libmicrohttpd's descriptor; valid as long as the connection is registered.
  let descriptor: Int32
  let slot: ConnectionSlot
  fileprivate var registryIndex = 0

  // The checks of exclusive access (SE-0176) are off for what changes with every part of a request: each takes 66
  // instructions to begin, and one thread alone uses it.
  @exclusivity(unchecked) var exchange: Exchange
  @exclusivity(unchecked) var body = RequestBody()
  @exclusivity(unchecked) private var gate: RequestGate
  var target: String?
  /// The header fields that the request may have, once its header has been read.
  var fieldNames = FieldNameFilter()
  /// The ID of the request, once its header has been read.
  var requestID: RequestID?
  /// The origin of the request: the peer of the connection, or the client that a trusted proxy names.
  var address: ClientAddress
  /// True if a trusted proxy reports that its client used TLS.
  var isForwardedOverTLS = false
  /// The client at the address, for which the body is counted.
  private(set) var network: ClientAddress
  /// The client for whose share the request counts: the network, until the handler has identified the client.
  var client: ClientAddress
  /// The access log entry of the request; nil if there is none.
  var access: AccessEntry?
  var deferredResponse: DeferredResponse?
  /// True if the request may be handled again after its response was made.
  var keepsBody = false
  /// True if the handler has already had the request.
  var isHandledAgain = false
  /// The results of the handler since it first had the request.
  var outcome: (any Sendable)?
  /// The lease that counts the file being sent.
  var fileLease: OpenFiles.Lease?
  /// True while the time limit for a request runs. For the first request it runs from the moment the connection is
  /// made.
  private var isRequestUnderWay = true
  /// Unowned, so that the threads do not write to a common reference count at each access. The server lives longer: a
  /// connection is closed, and then released, before the daemon that it belongs to has stopped, and `Daemon` keeps the
  /// context until then.
  unowned(unsafe) let server: ServerContext
  /// The accounting of its thread's processor time.
  private let attention: ThreadAttention
  /// True if clients of several addresses were active when the thread last turned to this connection.
  private var hasCompany = false

  /// True while the connection waits in the pacer: then the server is what keeps its request from being read.
  let waitsForTurn = Atomic<Bool>(false)
  /// True if some of the first request was read, or may now be read.
  let hasBegun = Atomic<Bool>(false)
  /// False once libmicrohttpd is about to close the connection.
  let isOpen = Atomic<Bool>(true)
  private let deadline: Atomic<Int64>
  private let busy = Atomic<Bool>(false)

  /// Creates a connection of a server, which must live longer.
  init(descriptor: Int32, slot: ConnectionSlot, server: ServerContext, attention: ThreadAttention) {
    let limits = server.limits
    self.descriptor = descriptor
    self.slot = slot
    address = slot.address
    client = slot.client
    network = slot.client
    self.server = server
    self.attention = attention
    gate = RequestGate(
      limits: RequestHeadReader.Limits(memoryBytes: limits.headerBytes, bodyBytes: limits.bodyBytes))
    exchange = Exchange(bodyLimit: limits.bodyBytes)
    deadline = Atomic(SystemClock.coarseMilliseconds + Int64(limits.requestSeconds) * 1_000)
  }

  /// The time by which the client must have sent something, in milliseconds of the monotonic clock.
  fileprivate var deadlineMilliseconds: Int64 { deadline.load(ordering: .relaxed) }

  /// True while a request is at the handler or its response is being sent.
  var isBusy: Bool { busy.load(ordering: .acquiring) }

  /// The address of this machine that the client connected to; nil for a socket without an address.
  var destination: ClientAddress? {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let address = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length) == 0 ? ClientAddress($0) : ClientAddress.unknown
      }
    }
    return address == .unknown ? nil : address
  }

  // MARK: Reading

  /// True if the client has sent data that was not read, or has closed its side.
  var hasUnread: Bool { peekByte(of: descriptor) >= 0 }

  /// Makes libmicrohttpd read through the gate from now on.
  func beginReceiving() {
    let isKept = keyway_receive_through(descriptor, Unmanaged.passUnretained(self).toOpaque(), receiveRequests)
    precondition(isKept, "a descriptor beyond all limits")
  }

  /// Starts counting the thread's time for this connection's address, unless only one address is active.
  func attend() {
    hasCompany = server.hasOtherClients
    guard hasCompany || attention.isCounting else { return }
    attention.turn(to: hasCompany ? slot.time : nil) { SystemClock.threadNanoseconds }
  }

  /// Counts transferred bytes, unless only one address is active.
  func count(_ byteCount: Int) {
    if hasCompany { slot.traffic.count(byteCount) }
  }

  /// Ends reading through the gate, because the descriptor is about to be closed.
  func endReceiving() {
    attend()
    isOpen.store(false, ordering: .relaxed)
    _ = keyway_receive_through(descriptor, nil, receiveRequests)
  }

  /// Returns the result of recv(2) for libmicrohttpd, and sets `errno`.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    attend()
    // libmicrohttpd reads when it is resumed, which is useless: the response comes first. The kernel reports what it
    // has received by then once the connection is watched again, after the response.
    if exchange.isSuspended, gate.isEmpty {
      errno = EAGAIN
      return -1
    }
    let reception = gate.receive(into: buffer) { buffer in
      let now = SystemClock.coarseMilliseconds
      guard server.mayRead(self, now: now) else { return -Int(EAGAIN) }
      let count = keyway_receive(descriptor, buffer.baseAddress, buffer.count)
      if count > 0 {
        self.count(count)
        if !hasBegun.exchange(true, ordering: .relaxed) {
          server.pacer.begun(now: now)
        } else if !isRequestUnderWay {
          server.pacer.wentOn(now: now)
        }
      }
      return count < 0 ? -Int(errno) : count
    }
    if gate.hasPartOfHead, !isRequestUnderWay { beginTime(server.limits) }
    // Makes the kernel report the unread data again.
    if gate.leavesBytes { setOption(SO_RCVLOWAT, 1, level: SOL_SOCKET, of: descriptor) }
    switch reception {
    case .bytes(let count): return count
    case .nothing: errno = EAGAIN
    case .failed(let error): errno = error
    case .refused(let fault):
      server.refuse(self, fault, gate.marks, hasBody: !gate.isHeadMethod)
      return 0
    }
    return -1
  }

  private func beginTime(_ limits: ServerLimits) {
    isRequestUnderWay = true
    deadline.store(SystemClock.coarseMilliseconds + Int64(limits.requestSeconds) * 1_000, ordering: .relaxed)
  }

  // MARK: The life of a request

  /// Records what a trusted proxy reports about the origin, once the header is available. `field` returns a header
  /// field.
  func noteForwarding(_ proxies: TrustedProxies, isLocal: Bool, _ field: (String) -> String?) {
    guard let forwarding = proxies.forwarding(by: slot.address, isLocal: isLocal, field) else { return }
    (address, isForwardedOverTLS) = forwarding
    network = server.limiter.client(at: address)
    client = network
    access?.record.client = address
  }

  /// Begins a request, once the request line is available.
  func begin(target: String?, limits: ServerLimits) {
    count(TrafficPacer.requestBytes)
    exchange = Exchange(bodyLimit: limits.bodyBytes)
    self.target = target
    if !isRequestUnderWay { beginTime(limits) }
  }

  /// Notes that the request is complete or refused: from here on the client has no deadline.
  func work() {
    busy.store(true, ordering: .releasing)
    clearDeadline()
  }

  /// Finishes a request, after the response is sent or the client is gone.
  func finish(limits: ServerLimits) {
    access?.end()
    access = nil
    target = nil
    requestID = nil
    address = slot.address
    isForwardedOverTLS = false
    network = slot.client
    client = slot.client
    body = RequestBody()
    deferredResponse = nil
    keepsBody = false
    isHandledAgain = false
    outcome = nil
    fileLease = nil
    deadline.store(SystemClock.coarseMilliseconds + Int64(limits.keepAliveSeconds) * 1_000, ordering: .relaxed)
    isRequestUnderWay = false
    if gate.hasPartOfHead { beginTime(limits) }
    busy.store(false, ordering: .releasing)
  }

  fileprivate func clearDeadline() {
    deadline.store(.max, ordering: .relaxed)
  }
}

/// Serves as libmicrohttpd's recv(2) on a connection.
private func receiveRequests(
  _ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
  guard let context else { return 0 }
  let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
  return connection.receive(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
}

/// The connections of libmicrohttpd, kept to cut those that are too slow, since its own timeout restarts with every
/// byte. A stop waits for the busy ones.
///
/// A registered descriptor is open, because libmicrohttpd closes it only after the connection was removed here, under
/// the same lock under which it may be shut down.
final class ConnectionRegistry: Sendable {
  private let connections = Locked([Connection]())

  func insert(_ connection: Connection) {
    connections.withLock { connections in
      connection.registryIndex = connections.count
      connections.append(connection)
    }
  }

  func remove(_ connection: Connection) {
    connections.withLock { connections in
      let index = connection.registryIndex
      guard connections.indices.contains(index), connections[index] === connection else { return }
      connections.swapAt(index, connections.count - 1)
      connections.removeLast()
      if index < connections.count { connections[index].registryIndex = index }
      if connections.capacity > 4 * connections.count + 64 { connections = Array(connections[...]) }
    }
  }

  /// True while a request of any connection is at the handler, or its response is being sent.
  var isBusy: Bool { connections.withLock { $0.contains(where: \.isBusy) } }

  /// Shuts down every connection with a request whose response is not complete, and returns their number.
  func cutBusy() -> Int {
    connections.withLock { connections in
      var count = 0
      for connection in connections where connection.isBusy {
        shutdown(connection.descriptor, Int32(SHUT_RDWR))
        count += 1
      }
      return count
    }
  }

  /// Makes libmicrohttpd check again the connections that have an unread request or an unread end of the client's side,
  /// and returns their number.
  ///
  /// libmicrohttpd 0.9.75 takes 128 events from epoll at a time, and if it gets exactly that many, waits for more
  /// before it serves any: 128 clients that have all sent a request then wait for each other. Also, if the end of a
  /// client's side arrived together with its request, there was one event for both: after the response it reads no
  /// more, and the connection would stay half closed (CLOSE_WAIT) until its idle timeout. Another signal resolves both
  /// cases, and costs a connection that is about to be served one needless check. A connection that waits in the pacer
  /// is skipped: otherwise thousands of them would be checked needlessly before any other is served.
  func wakeUnread() -> Int {
    forEach { connection in
      guard !connection.isBusy, !connection.waitsForTurn.load(ordering: .relaxed), connection.hasUnread else {
        return false
      }
      Self.signal(connection)
      return true
    }
  }

  /// The number of connections checked together, during which none can be opened or closed.
  private static let slice = 64

  /// Calls `body` for the connections, one slice at a time so that the threads that open and close connections never
  /// wait long, and returns the number for which it returns true. If one is closed in the meantime, another may be
  /// skipped.
  private func forEach(_ body: (Connection) -> Bool) -> Int {
    var (count, start) = (0, 0)
    while true {
      let isFinished = connections.withLock { connections in
        for connection in connections[min(start, connections.count)...].prefix(Self.slice) where body(connection) {
          count += 1
        }
        start += Self.slice
        return start >= connections.count
      }
      if isFinished { return count }
      // A mutex goes to the thread that asks next, which would be this one every time.
      usleep(50)
    }
  }

  /// Makes libmicrohttpd check again those of these connections that are still registered.
  func wake(_ woken: [Connection]) {
    connections.withLock { connections in
      for connection in woken {
        let index = connection.registryIndex
        guard connections.indices.contains(index), connections[index] === connection else { continue }
        Self.signal(connection)
      }
    }
  }

  /// Makes the kernel signal unread data again: setting the low-water mark to its current value does that
  /// (`tcp_set_rcvlowat`).
  private static func signal(_ connection: Connection) {
    setOption(SO_RCVLOWAT, 1, level: SOL_SOCKET, of: connection.descriptor)
  }

  /// Shuts down every connection whose client missed its deadline, and returns their number; libmicrohttpd then reads
  /// the end of the stream and closes them. A connection that waits in the pacer is not late.
  func cutOverdue(now milliseconds: Int64) -> Int {
    forEach { connection in
      guard connection.deadlineMilliseconds <= milliseconds, !connection.waitsForTurn.load(ordering: .relaxed) else {
        return false
      }
      shutdown(connection.descriptor, Int32(SHUT_RDWR))
      connection.clearDeadline()
      return true
    }
  }
}

import CSocketCalls
import Glibc
import Support
import Synchronization

/// What the server keeps for one TCP connection that libmicrohttpd has, from accepting to closing: one object, reused
/// for every request on it.
///
/// `@unchecked Sendable`: `exchange`, `target`, `fieldNames`, `requestID`, `address`, `isForwardedOverTLS`, `network`,
/// `client`, `access`, `body`, `deferredResponse`, `fileLease`, `gate` and `isRequestUnderWay` are touched by the one
/// libmicrohttpd thread that the connection belongs to; `registryIndex` under the registry's lock; the rest is constant
/// or atomic.
final class Connection: RequestHolder, @unchecked Sendable {
  /// libmicrohttpd's descriptor; valid as long as the connection is registered.
  let descriptor: Int32
  let slot: ConnectionSlot
  fileprivate var registryIndex = 0

  var exchange: Exchange
  var target: String?
  /// Which header fields the request may have, once its header has been read.
  var fieldNames = FieldNameFilter()
  /// The name of the request, once its header has been read.
  var requestID: RequestID?
  /// Where the request came from: the other side of the connection, or whom a trusted proxy names.
  var address: ClientAddress
  /// Whether a trusted proxy says that its client used TLS.
  var isForwardedOverTLS = false
  /// The client at the address, which the body counts for.
  private(set) var network: ClientAddress
  /// The client whose share the request counts for: the network, until the handler knows better.
  var client: ClientAddress
  /// What the access log will say of the request; nil where there is none.
  var access: AccessEntry?
  var body = RequestBody()
  var deferredResponse: DeferredResponse?
  /// Whether the request may be handled once more after its response was made.
  var keepsBody = false
  /// True if the handler had the request before.
  var isHandledAgain = false
  /// The findings of the handler since it had the request before.
  var outcome: (any Sendable)?
  /// What counts the file that is being sent.
  var fileLease: OpenFiles.Lease?
  private var gate: RequestGate
  /// Whether the time for a request runs. The first has been under way since the connection was made.
  private var isRequestUnderWay = true
  /// Counts no references, which both threads would write to at each look. It lives longer: a connection is closed, and
  /// then released, before the daemon that it belongs to has stopped, and `Daemon` keeps the context until then.
  unowned(unsafe) let server: ServerContext
  /// What its thread works for.
  private let attention: ThreadAttention

  /// Whether it is with the pacer: then the server is what keeps its request from being read.
  let waitsForTurn = Atomic<Bool>(false)
  /// Whether something of a first request was read, or may be now.
  let hasBegun = Atomic<Bool>(false)
  /// False when libmicrohttpd is about to close it.
  let isOpen = Atomic<Bool>(true)
  private let deadline: Atomic<Int64>
  private let busy = Atomic<Bool>(false)

  /// A connection of a server that lives longer.
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

  /// When the client must have sent something, in milliseconds of the monotonic clock.
  fileprivate var deadlineMilliseconds: Int64 { deadline.load(ordering: .relaxed) }

  /// Whether a request is at the handler or its answer on the way.
  var isBusy: Bool { busy.load(ordering: .acquiring) }

  /// The address of this machine that the client has connected to; nil for a socket that has none.
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

  /// Whether the client has sent something that was not read, or has closed its side.
  var hasUnread: Bool { peekByte(of: descriptor) >= 0 }

  /// From now on libmicrohttpd reads through the gate.
  func beginReceiving() {
    let isKept = keyway_receive_through(descriptor, Unmanaged.passUnretained(self).toOpaque(), receiveRequests)
    precondition(isKept, "a descriptor beyond all limits")
  }

  /// Its thread turns to it: the time from now on counts for its address, unless that is alone.
  func attend() {
    attention.turn(to: server.hasCompany ? slot.time : nil) { SystemClock.threadNanoseconds }
  }

  /// Counts what is moved, unless its address is alone.
  func count(_ byteCount: Int) {
    if server.hasCompany { slot.traffic.count(byteCount) }
  }

  /// The descriptor is about to be closed.
  func endReceiving() {
    attend()
    isOpen.store(false, ordering: .relaxed)
    _ = keyway_receive_through(descriptor, nil, receiveRequests)
  }

  /// What recv(2) gives libmicrohttpd, `errno` included.
  func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    attend()
    // libmicrohttpd reads when it is resumed, to no purpose: the answer comes first. What the kernel has then, it
    // reports once the connection is watched again, behind the answer.
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
    // The kernel reports once more what lies there unread.
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

  /// The header is there: notes what a trusted proxy says of where it comes from. `field` gives a header field.
  func noteForwarding(_ proxies: TrustedProxies, isLocal: Bool, _ field: (String) -> String?) {
    guard let forwarding = proxies.forwarding(by: slot.address, isLocal: isLocal, field) else { return }
    (address, isForwardedOverTLS) = forwarding
    network = server.limiter.client(at: address)
    client = network
    access?.record.client = address
  }

  /// The request line is there.
  func begin(target: String?, limits: ServerLimits) {
    count(TrafficPacer.requestBytes)
    exchange = Exchange(bodyLimit: limits.bodyBytes)
    self.target = target
    if !isRequestUnderWay { beginTime(limits) }
  }

  /// The request is complete or refused: from here on the client is not in debt.
  func work() {
    busy.store(true, ordering: .releasing)
    clearDeadline()
  }

  /// The answer is sent, or the client gone.
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

/// libmicrohttpd's recv(2) on a connection.
private func receiveRequests(
  _ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
  guard let context else { return 0 }
  let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
  return connection.receive(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
}

/// The connections that libmicrohttpd has, for the sake of those that are too slow: its own timeout starts again with
/// every byte. A stop waits for those that are busy.
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

  /// Whether a request is at the handler, or its answer on the way.
  var isBusy: Bool { connections.withLock { $0.contains(where: \.isBusy) } }

  /// Shuts down every connection on which a request has not been answered to its end, and gives their number.
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

  /// Has libmicrohttpd look again at connections whose request, or whose client's end, lies there unread, and gives
  /// their number.
  ///
  /// 0.9.75 takes 128 events from epoll at a time, and where it gets exactly that many, waits for more before it serves
  /// any: 128 clients that have all sent a request and wait for the answer then wait for each other. And where the end
  /// of a client's side came together with its request, one event was for both: after the answer it reads no more, and
  /// the connection would stay half closed (CLOSE_WAIT) until it is idle for too long. One more signal ends that, and
  /// costs a connection that is about to be served a look in vain. One that waits for its turn with the pacer is left
  /// there: thousands of them would be looked at in vain before any other is served.
  func wakeUnread() -> Int {
    forEach { connection in
      guard !connection.isBusy, !connection.waitsForTurn.load(ordering: .relaxed), connection.hasUnread else {
        return false
      }
      Self.signal(connection)
      return true
    }
  }

  /// How many connections are looked at together, while none can be opened or closed.
  private static let slice = 64

  /// Looks at the connections, a slice at a time so that the threads that open and close some never wait long, and
  /// gives for how many `body` says yes. Where one is closed meanwhile, one may be left out.
  private func forEach(_ body: (Connection) -> Bool) -> Int {
    var (count, start) = (0, 0)
    while true {
      let isOver = connections.withLock { connections in
        for connection in connections[min(start, connections.count)...].prefix(Self.slice) where body(connection) {
          count += 1
        }
        start += Self.slice
        return start >= connections.count
      }
      if isOver { return count }
      // A mutex goes to the thread that asks next, which would be this one again and again.
      usleep(50)
    }
  }

  /// Has libmicrohttpd look again at those of these connections that it still has.
  func wake(_ woken: [Connection]) {
    connections.withLock { connections in
      for connection in woken {
        let index = connection.registryIndex
        guard connections.indices.contains(index), connections[index] === connection else { continue }
        Self.signal(connection)
      }
    }
  }

  /// Has the kernel signal once more what lies unread: setting the low-water mark to what it is does that
  /// (`tcp_set_rcvlowat`).
  private static func signal(_ connection: Connection) {
    setOption(SO_RCVLOWAT, 1, level: SOL_SOCKET, of: connection.descriptor)
  }

  /// Shuts down every connection whose client let its deadline pass, and gives their number; libmicrohttpd then reads
  /// the end of the stream and closes them. One that waits for its turn to be read is not late.
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

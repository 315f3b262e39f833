import Synchronization

/// What the server keeps for one TCP connection that libmicrohttpd has, from accepting to closing: one object, reused
/// for every request on it.
///
/// `@unchecked Sendable`: `exchange`, `target`, `requestID`, `access`, `body`, `deferredResponse` and `isFirstRequest`
/// are touched by the one libmicrohttpd thread that the connection belongs to; `registryIndex` under the registry's
/// lock; the rest is constant or atomic.
final class Connection: @unchecked Sendable {
  /// libmicrohttpd's descriptor; valid as long as the connection is registered.
  let descriptor: Int32
  let slot: ConnectionSlot
  var registryIndex = 0

  var exchange: Exchange
  var target: String?
  /// The name of the request, once its header has been read.
  var requestID: RequestID?
  /// What the access log will say of the request; nil where there is none.
  var access: AccessEntry?
  var body = RequestBody()
  var deferredResponse: DeferredResponse?
  private var isFirstRequest = true

  private let deadline: Atomic<Int64>
  private let busy = Atomic<Bool>(false)

  init(descriptor: Int32, slot: ConnectionSlot, limits: ServerLimits) {
    self.descriptor = descriptor
    self.slot = slot
    exchange = Exchange(bodyLimit: limits.bodyBytes)
    deadline = Atomic(MonotonicClock.milliseconds + Int64(limits.requestSeconds) * 1_000)
  }

  /// When the client must have sent something, in milliseconds of the monotonic clock.
  var deadlineMilliseconds: Int64 { deadline.load(ordering: .relaxed) }

  /// Whether a request is at the handler or its answer on the way.
  var isBusy: Bool { busy.load(ordering: .acquiring) }

  /// The request line is there. The first request has been under way since the connection was made.
  func begin(target: String?, limits: ServerLimits) {
    exchange = Exchange(bodyLimit: limits.bodyBytes)
    self.target = target
    if isFirstRequest {
      isFirstRequest = false
    } else {
      deadline.store(MonotonicClock.milliseconds + Int64(limits.requestSeconds) * 1_000, ordering: .relaxed)
    }
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
    body = RequestBody()
    deferredResponse = nil
    deadline.store(MonotonicClock.milliseconds + Int64(limits.keepAliveSeconds) * 1_000, ordering: .relaxed)
    busy.store(false, ordering: .releasing)
  }

  func clearDeadline() {
    deadline.store(.max, ordering: .relaxed)
  }
}

/// One event stream on the hub thread it belongs to. There are thousands: every property counts.
final class Subscriber {
  let id: StreamID
  /// Who reads it.
  let client: ClientAddress
  /// The hub's own descriptor; -1 until the connection has been taken over.
  var descriptor: Int32 = -1
  var isChunked = true
  /// The kernel took less than it was given, and has not said since that there is room.
  var isBlocked = false
  /// It is in the list of those to be flushed at the end of this slice.
  var isTouched = false
  /// It is in the list of those to be closed at the end of this slice.
  var isDoomed = false
  /// Why no more events are taken; the queue still has to be sent.
  var ending: StreamEnd?
  /// Whether the other side had everything when the end was decided; nil before.
  var wasDelivered: Bool?
  /// Whether it misses events. Never while it is ending.
  var lag = Lag.none
  /// When it began to miss them, in milliseconds that may have wrapped around.
  var lagBegan: UInt32 = 0
  /// What becomes of it when too much waits.
  let overflow: OverflowPolicy
  var channel: Channel?
  var indexInChannel: Int32 = 0
  var queue = PendingQueue()
  var account: QueueAccount
  var slot: ConnectionSlot?
  /// What the access log will say of it; nil where there is none.
  var access: AccessEntry?
  let openedSecond: Int32
  /// When bytes last left, or began to wait.
  var progressSecond: Int32
  /// When the wait ends for being taken over, or, once it is ending, for being flushed.
  var deadlineSecond: Int32

  init(_ opening: HubOpening, now: Int32, attachSeconds: Int) {
    id = opening.id
    client = opening.client
    overflow = opening.overflow
    account = QueueAccount(opening.reservation)
    openedSecond = now
    progressSecond = now
    deadlineSecond = now + Int32(clamping: attachSeconds)
  }

  var isAttached: Bool { descriptor >= 0 }

  /// Whether a broadcast may be sent without looking at the queue.
  var isClear: Bool { isAttached && isChunked && queue.isEmpty && !isBlocked && lag == .none }
}

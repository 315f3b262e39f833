/// What the ledger has for the queue of one event stream. Touched by the stream's hub thread alone.
///
/// A reader that reads at once never has more in its queue than is not counted, and costs nothing here. What more waits
/// is counted in steps, so that the lock of the ledger is not taken for every event.
struct QueueAccount {
  private static let step = 65_536

  private var reservation: MemoryReservation?

  /// Nothing, or what was reserved for what the stream begins with.
  init(_ reservation: MemoryReservation? = nil) { self.reservation = reservation }

  /// How many bytes are reserved for a queue of a length.
  static func reserved(for byteCount: Int) -> Int {
    byteCount <= MemoryLedger.uncountedBytes ? 0 : (byteCount + step - 1) / step * step
  }

  /// Has room for a queue of so many bytes. Throws where that is refused, and leaves what there was.
  mutating func grow(
    to byteCount: Int, of client: ClientAddress, in ledger: MemoryLedger
  ) throws(MemoryRefusal) {
    let wanted = Self.reserved(for: byteCount)
    guard wanted > reservation?.byteCount ?? 0 else { return }
    if let reservation {
      try reservation.resize(to: wanted)
    } else {
      reservation = try ledger.reserve(wanted, for: client, .pendingEvents)
    }
  }

  /// Gives back what a queue of so many bytes does not need.
  mutating func shrink(to byteCount: Int) {
    guard let reservation else { return }
    let wanted = Self.reserved(for: byteCount)
    if wanted == 0 {
      self.reservation = nil
    } else if wanted < reservation.byteCount {
      // Less is never refused.
      try? reservation.resize(to: wanted)
    }
  }
}

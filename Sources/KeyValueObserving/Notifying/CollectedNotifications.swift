import KeyValueModel

/// The notifications of one commit for each observer, within the limits of one event, and the observers for which the
/// commit exceeds the limits.
struct CollectedNotifications {
  /// A notification, with the information needed to order and to retract it.
  private struct Notification {
    let id: ObserverIndex.TrackedID
    let change: Change
    var isRetracted = false
  }

  /// The maximum number of notifications of one commit that are collected for one observer.
  private let changesPerObserver: Int
  /// The maximum number of bytes of text in their values.
  private let bytesPerObserver: Int
  private var byObserver: [ObserverID: [Notification]] = [:]
  /// The number of bytes in the values that are collected for each observer.
  private var bytes: [ObserverID: Int] = [:]
  /// The measured arrays by memory address. They are held, so that no other array can take the address.
  private var measured: [UInt: (elements: [Value], bytes: Int)] = [:]
  /// The observers for which this commit exceeds the limits.
  private(set) var overflowed: Set<ObserverID> = []
  /// The overflowed observers that can be brought up to date later: their values are too long, or the budget does not
  /// suffice.
  private var missed: Set<ObserverID> = []
  /// The observers for which the budget did not suffice. They count as overflowed for all further commits.
  private var missingRest: Set<ObserverID> = []
  /// The observers in `missingRest` of which the event of an earlier commit says so.
  private var toldBefore: Set<ObserverID> = []

  /// Creates an empty collection with these limits.
  init(changesPerObserver: Int, bytesPerObserver: Int) {
    (self.changesPerObserver, self.bytesPerObserver) = (changesPerObserver, bytesPerObserver)
  }

  /// Returns the number of notifications of an observer.
  func count(of observer: ObserverID) -> Int { byObserver[observer]?.count ?? 0 }

  /// Returns true if there is room for one more notification of an observer. If not, all its notifications are dropped.
  mutating func hasRoom(for observer: ObserverID) -> Bool {
    guard !overflowed.contains(observer) else { return false }
    guard count(of: observer) >= changesPerObserver else { return true }
    overflow(observer, isTooLong: false)
    return false
  }

  /// Adds a notification for which there is room. If the values are too long together with earlier ones, the observer
  /// overflows instead.
  mutating func append(_ change: Change, of id: ObserverIndex.TrackedID, for observer: ObserverID) {
    if bytesPerObserver < .max {
      let sum = (bytes[observer] ?? 0) + textBytes(of: change.old) + textBytes(of: change.new)
      guard sum <= bytesPerObserver else { return overflow(observer, isTooLong: true) }
      bytes[observer] = sum
    }
    byObserver[observer, default: []].append(Notification(id: id, change: change))
  }

  /// Excludes an observer from this commit and all further ones. It is brought up to date later, like a slow reader.
  mutating func miss(_ observer: ObserverID) {
    missingRest.insert(observer)
    overflow(observer, isTooLong: true)
  }

  /// True if an observer misses all further commits.
  func missesRest(_ observer: ObserverID) -> Bool { missingRest.contains(observer) }

  private mutating func overflow(_ observer: ObserverID, isTooLong: Bool) {
    if isTooLong { missed.insert(observer) }
    overflowed.insert(observer)
    byObserver[observer] = nil
  }

  /// Retracts the notification at a position, if it was not dropped.
  mutating func retract(_ observer: ObserverID, at position: Int) {
    byObserver[observer]?[position].isRetracted = true
  }

  /// Returns the event of each observer that is notified. `observes` returns true for observers that still have
  /// observations: an observer that has lost all its objects has missed nothing.
  func events(
    of commit: Commit, gone: [ObserverID: [ObserverEvent.Gone]], observes: (ObserverID) -> Bool
  ) -> [ObserverEvent] {
    let new = toldBefore.isEmpty ? overflowed : overflowed.subtracting(toldBefore)
    let left = gone.isEmpty ? new : new.filter { gone[$0] == nil || observes($0) }
    let isSimple = gone.isEmpty && left.isEmpty
    let observers = isSimple ? Set(byObserver.keys) : Set(byObserver.keys).union(gone.keys).union(left)
    return observers.compactMap { observer in
      let changes = (byObserver[observer] ?? []).lazy.filter { !$0.isRetracted }.map(\.change)
      let ended = gone[observer] ?? []
      let isGone = Set(ended.map(\.withoutContext))
      let hasOverflowed = left.contains(observer)
      let event = ObserverEvent(
        observer: observer, revision: commit.revision, writer: commit.writer,
        changes: changes.filter {
          !isGone.contains(.init(cell: $0.cell, object: $0.observation.object, context: nil))
        },
        gone: ended, hasOverflowed: hasOverflowed, isTooLong: hasOverflowed && missed.contains(observer))
      return event.changes.isEmpty && event.gone.isEmpty && !event.hasOverflowed ? nil : event
    }
  }

  /// Removes everything for the next commit, except for the observers that miss all further commits.
  mutating func removeAll() {
    byObserver.removeAll()
    bytes.removeAll()
    measured.removeAll()
    overflowed = missingRest
    toldBefore = missingRest
    missed.removeAll()
  }

  /// The minimum number of elements for which the size of an array is remembered.
  private static let longArray = 64

  /// Returns the number of bytes of text in a value. An array that many changes have in common is measured once.
  private mutating func textBytes(of value: Value?) -> Int {
    guard let value else { return 0 }
    guard case .array(let elements) = value, elements.count >= Self.longArray else { return value.leastTextBytes }
    let address = elements.withUnsafeBufferPointer { UInt(bitPattern: $0.baseAddress) }
    if let known = measured[address], known.elements.count == elements.count { return known.bytes }
    let bytes = value.leastTextBytes
    measured[address] = (elements, bytes)
    return bytes
  }
}

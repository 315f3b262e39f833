import KeyValueModel

/// What one commit has for each observer, within the limits of one event; and the observers that it has too much for.
struct CollectedNotifications {
  /// A notification, with what it takes to put it in its place and to take it back.
  private struct Notification {
    let id: ObserverIndex.TrackedID
    let change: Change
    var isRetracted = false
  }

  /// The most notifications of one commit that are collected for one observer.
  private let changesPerObserver: Int
  /// The most bytes of text that the values of these have.
  private let bytesPerObserver: Int
  private var byObserver: [ObserverID: [Notification]] = [:]
  /// The bytes of the values that are collected for an observer.
  private var bytes: [ObserverID: Int] = [:]
  /// The arrays that were measured, by where they are in memory; held, so that no other takes the place.
  private var measured: [UInt: (elements: [Value], bytes: Int)] = [:]
  /// The observers that this commit has more for.
  private(set) var overflowed: Set<ObserverID> = []
  /// The overflowed that can be brought up to date later: the values are too long, or the budget does not suffice.
  private var missed: Set<ObserverID> = []
  /// The observers for which the budget did not suffice: these are overflowed for all further commits.
  private var missingRest: Set<ObserverID> = []
  /// Those of them that earlier commits have told so.
  private var toldBefore: Set<ObserverID> = []

  /// Nothing yet, within these limits.
  init(changesPerObserver: Int, bytesPerObserver: Int) {
    (self.changesPerObserver, self.bytesPerObserver) = (changesPerObserver, bytesPerObserver)
  }

  /// The number of notifications of an observer.
  func count(of observer: ObserverID) -> Int { byObserver[observer]?.count ?? 0 }

  /// True if an observer may have one notification more. If not, all that it has is dropped.
  mutating func hasRoom(for observer: ObserverID) -> Bool {
    guard !overflowed.contains(observer) else { return false }
    guard count(of: observer) >= changesPerObserver else { return true }
    overflow(observer, isTooLong: false)
    return false
  }

  /// Adds a notification for which there is room, unless its values are too long with those before.
  mutating func append(_ change: Change, of id: ObserverIndex.TrackedID, for observer: ObserverID) {
    if bytesPerObserver < .max {
      let sum = (bytes[observer] ?? 0) + textBytes(of: change.old) + textBytes(of: change.new)
      guard sum <= bytesPerObserver else { return overflow(observer, isTooLong: true) }
      bytes[observer] = sum
    }
    byObserver[observer, default: []].append(Notification(id: id, change: change))
  }

  /// Has an observer miss this commit and all further ones: it is brought up to date later, as a slow reader is.
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

  /// Takes back the notification at a position, where it was not dropped.
  mutating func retract(_ observer: ObserverID, at position: Int) {
    byObserver[observer]?[position].isRetracted = true
  }

  /// The event of each observer; those that are not notified are not there. `observes` says which observers still have
  /// observations: one that has lost all its objects has missed nothing.
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

  /// Forgets everything but who misses all further commits: the next begins with nothing.
  mutating func removeAll() {
    byObserver.removeAll()
    bytes.removeAll()
    measured.removeAll()
    overflowed = missingRest
    toldBefore = missingRest
    missed.removeAll()
  }

  /// The number of elements from which on an array is worth being remembered.
  private static let longArray = 64

  /// The bytes of text of a value. An array that many changes have in common is measured once.
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

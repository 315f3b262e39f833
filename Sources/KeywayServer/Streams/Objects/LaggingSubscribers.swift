import HTTPServer
import KeyValueObserving

/// The streams of one topic whose readers are too slow, with what each has missed. An event is taken in once for all of
/// them: a stream that begins to lag begins a new segment, unless no event came since the last one began, and in the
/// end has missed all segments since.
struct LaggingSubscribers {
  private struct Member {
    /// What it missed before its first segment.
    var missed: PendingChanges?
    let firstSegment: Int
    /// True if it is being told the state in which that began.
    var isTold = false
    /// What the ledger has for that.
    let account: MemoryReservation?
  }

  /// What came between one beginning to lag and the next.
  private struct Segment {
    let number: Int
    /// How many begin with it: at least one, so that there are never more segments than members.
    var members = 1
    var missed = PendingChanges(since: DeliveredValues())
  }

  private var members: [StreamID: Member] = [:]
  /// In the order of their numbers.
  private var segments: [Segment] = []
  private var nextSegment = 0

  /// How many segments are kept apart: never more than there are members.
  var segmentCount: Int { segments.count }

  /// Takes in what one commit did to what the topic observes.
  mutating func absorb(_ changes: [Change]) {
    guard let last = segments.indices.last else { return }
    segments[last].missed.absorb(changes, gone: nil)
  }

  /// What all of them have missed is not known any more.
  mutating func forgetMissed() {
    for id in members.keys {
      members[id]?.missed = nil
      members[id]?.isTold = false
    }
  }

  /// A stream begins to lag. `missed` is what it has missed until now; nil where that is not known, and it will have to
  /// receive the whole state anew. With `isTold` it is being sent that already.
  mutating func add(
    _ id: StreamID, missed: PendingChanges?, isTold: Bool = false, _ account: MemoryReservation? = nil
  ) {
    remove(id)
    if let last = segments.indices.last, segments[last].missed.commits == 0 {
      segments[last].members += 1
      members[id] = Member(missed: missed, firstSegment: segments[last].number, isTold: isTold, account: account)
    } else {
      segments.append(Segment(number: nextSegment))
      members[id] = Member(missed: missed, firstSegment: nextSegment, isTold: isTold, account: account)
      nextSegment += 1
    }
  }

  /// A stream lags no longer, or is over.
  mutating func remove(_ id: StreamID) {
    guard let member = members.removeValue(forKey: id), let index = index(of: member.firstSegment) else { return }
    segments[index].members -= 1
    guard segments[index].members == 0 else { return }
    // A stream that began before it goes on missing what it has.
    let segment = segments.remove(at: index)
    if index > 0 { segments[index - 1].missed.merge(segment.missed) }
  }

  /// Whether a stream lags.
  func contains(_ id: StreamID) -> Bool { members[id] != nil }

  /// True if a stream receives the whole state anew.
  func isOwed(_ id: StreamID) -> Bool { members[id].map { $0.missed == nil && !$0.isTold } ?? false }

  /// True if a stream that was told the state has missed nothing since.
  func hasMissedNothing(_ id: StreamID) -> Bool {
    guard let member = members[id], member.isTold, let first = index(of: member.firstSegment) else { return false }
    return segments[first...].allSatisfy { $0.missed.commits == 0 }
  }

  /// What a stream has missed; nil where that is not known, or where it does not lag.
  func missed(by id: StreamID) -> PendingChanges? {
    guard let member = members[id], var missed = member.missed, let first = index(of: member.firstSegment) else {
      return nil
    }
    for segment in segments[first...] { missed.merge(segment.missed) }
    return missed
  }

  private func index(of number: Int) -> Int? {
    var range = segments.indices
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      if segments[middle].number == number { return middle }
      range = segments[middle].number < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return nil
  }
}

/// The streams of one channel that belong to one hub thread, and the events of this slice that they have still to get.
final class Channel {
  let id: ChannelID
  private(set) var members: [Subscriber] = []
  private(set) var batch: [EventBytes] = []
  private(set) var batchByteCount = 0
  /// How far its members have been told, where the channel counts for itself; nil where it goes by what is posted to
  /// the hub.
  private(set) var position: UInt64?

  init(id: ChannelID) {
    self.id = id
  }

  func join(_ subscriber: Subscriber) {
    subscriber.channel = self
    subscriber.indexInChannel = Int32(members.count)
    members.append(subscriber)
  }

  /// Order among members does not matter: the last takes the place of the one that leaves.
  func leave(_ subscriber: Subscriber) {
    let index = Int(subscriber.indexInChannel)
    assert(members[index] === subscriber)
    members.swapAt(index, members.count - 1)
    members.removeLast()
    if index < members.count { members[index].indexInChannel = Int32(index) }
    subscriber.channel = nil
    if members.capacity > 4 * members.count + 64 { members = Array(members[...]) }
  }

  /// Whether this is the first event of its batch.
  func add(_ event: EventBytes) -> Bool {
    batch.append(event)
    batchByteCount += event.framedCount
    if position != nil { move(to: event.position) }
    return batch.count == 1
  }

  /// Has the channel count for itself, and its members told as far as a position.
  func move(to position: UInt64) {
    self.position = max(self.position ?? 0, position)
  }

  func takeBatch() -> [EventBytes] {
    defer { (batch, batchByteCount) = ([], 0) }
    return batch
  }
}

import KeyValueModel
import TestKit

/// A follower of a server's journal that checks its guarantees: each transaction once, in the order of revisions, under
/// its own id.
struct JournalFollower {
  let stream: WireStream
  /// The last revision that it received.
  private(set) var revision: Int

  /// Follows from a revision, or from the present.
  init(
    _ client: WireClient, epoch: String, since revision: Int? = nil, receiveBufferBytes: Int32? = nil
  ) throws(LoopbackError) {
    let target = revision.map { "/v1/journal?since=\(epoch)-\($0)" } ?? "/v1/journal"
    stream = try client.stream(target, receiveBufferBytes: receiveBufferBytes)
    let first = try stream.block()
    if let revision {
      self.revision = revision
    } else {
      guard let present = first?.json["revision"].whole, first?.name == "heartbeat" else {
        throw LoopbackError(.malformed, "\(String(describing: first))")
      }
      self.revision = present
    }
  }

  /// Returns the next transaction.
  mutating func next() throws(LoopbackError) -> Value {
    let event = try stream.next()
    let told = event.json["revision"].whole ?? -1
    guard event.name == "transaction", told == revision + 1, event.id?.hasSuffix("-\(told)") == true else {
      throw LoopbackError(.malformed, "after \(revision): \(event.text.prefix(200))")
    }
    revision = told
    return event.json
  }

  /// Reads up to a revision.
  mutating func read(through last: Int) throws(LoopbackError) {
    while revision < last { _ = try next() }
  }
}

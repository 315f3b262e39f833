import KeyValueModel

/// Cuts what comes of another node's stream into whole events, so that nothing of this node's own gets into the midst
/// of one.
struct PassedEvents {
  /// The last id among the events that were given out; before the first, what the stream goes on from, if anything.
  private(set) var cursor: Cursor?
  private let limit: Int
  /// What has come of the next event.
  private var pending: [UInt8] = []

  /// Events that are not longer than so many bytes, of a stream that goes on from a cursor, if there is one.
  init(limit: Int, after cursor: Cursor? = nil) {
    self.limit = limit
    self.cursor = cursor
  }

  /// The revision of that id; 0 where there is none.
  var revision: Revision { cursor?.revision ?? 0 }

  /// How many bytes of an event that is not whole are held.
  var pendingBytes: Int { pending.count }

  /// The events that are whole with the next bytes of the stream. Throws where one is too long.
  mutating func take(_ bytes: ArraySlice<UInt8>) throws(NodeFault) -> [UInt8] {
    // The end of an event may be split between two pieces.
    let unseen = max(0, pending.count - 1)
    pending.append(contentsOf: bytes)
    var end = pending.count
    while end >= unseen + 2, pending[end - 1] != Self.lineFeed || pending[end - 2] != Self.lineFeed { end -= 1 }
    guard end >= unseen + 2 else {
      guard pending.count <= limit else { throw NodeFault("an event of the stream has more than \(limit) bytes") }
      return []
    }
    let events = Array(pending[..<end])
    pending.removeFirst(end)
    cursor = Self.lastCursor(in: events) ?? cursor
    return events
  }

  private static let lineFeed = UInt8(ascii: "\n")
  private static let idField = Array("id: ".utf8)

  /// How many bytes of whole events can leave before a node has come further than `revision`, and the last revision
  /// among those; nil where they have no id.
  static func prefix(of events: [UInt8], notAfter revision: Revision) -> (count: Int, last: Revision?) {
    var (count, last): (Int, Revision?) = (0, nil)
    while count < events.count {
      var end = count + 1
      while end < events.count, events[end] != lineFeed || events[end - 1] != lineFeed { end += 1 }
      let event = events[count..<min(end + 1, events.count)]
      if let found = lastCursor(in: Array(event))?.revision {
        guard found <= revision else { break }
        last = found
      }
      count = event.endIndex
    }
    return (count, last)
  }

  /// The last `id:` line.
  private static func lastCursor(in events: [UInt8]) -> Cursor? {
    var end = events.count
    while end > 0 {
      let start = events[..<(end - 1)].lastIndex(of: lineFeed).map { $0 + 1 } ?? 0
      let line = events[start..<end]
      if line.starts(with: idField) {
        return Cursor(String(decoding: line.dropFirst(idField.count).dropLast(), as: UTF8.self))
      }
      end = start
    }
    return nil
  }
}

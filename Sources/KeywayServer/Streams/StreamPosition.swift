import KeyValueModel

/// Where an event of a stream stands among those of all revisions: what the hub knows as its position.
///
/// At one revision, what its commit did comes first, and then what else a stream was sent of that state, such as the
/// first state of a cell. The two must differ: a stream that misses only the latter has received the commit.
struct StreamPosition: Hashable, Comparable, Sendable {
  /// As the hub has it.
  let rawValue: UInt64

  /// A position that the hub gave back.
  init(rawValue: UInt64) { self.rawValue = rawValue }

  /// What the commit of a revision did.
  static func commit(_ revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2) }

  /// What was sent of the state of a revision, after its commit.
  static func state(at revision: Revision) -> StreamPosition { StreamPosition(rawValue: revision * 2 + 1) }

  /// The revision.
  var revision: Revision { rawValue / 2 }

  /// The last commit that a stream has received which misses this, and everything after it, and nothing before.
  var lastNotified: Revision { rawValue == 0 ? 0 : (rawValue - 1) / 2 }

  static func < (left: StreamPosition, right: StreamPosition) -> Bool { left.rawValue < right.rawValue }
}

import CEL
import HTTPServer
import HTTPTypes
package import KeyValueModel
import Support

/// The client that sends a request, as far as it is known.
package enum Requester: Sendable {
  /// Any client of a server without keys. The access is nil if the schema has no rules.
  case anybody(WriteAccess?)
  /// A client without a token.
  case nobody(WriteAccess)
  /// The holder of a verified token.
  case known(KnownRequester)

  /// True if the requester may do what is reserved for admins.
  var isAdmin: Bool {
    switch self {
    case .anybody: true
    case .nobody: false
    case .known(let known): known.viewer == nil
    }
  }

  /// True if the requester may follow this server: the identity of a node, or an admin.
  var mayFollow: Bool {
    if case .known(let known) = self, known.isNode { true } else { isAdmin }
  }

  /// The viewer whose read rules apply, or nil if none do.
  var viewer: Viewer? {
    switch self {
    case .anybody(let access): access?.viewer
    case .nobody(let access): access.viewer
    case .known(let known): known.viewer
    }
  }

  /// The identity of a verified token or session, or nil if the requester has none.
  package var identity: Identity? {
    if case .known(let known) = self { known.identity } else { nil }
  }

  /// The `sub` of the identity, or nil if the requester has none.
  var subject: String? { identity?.subject }

  /// True for a requester without a token to whom rules apply.
  var isUnknown: Bool { viewer != nil && identity == nil }

  /// The access that the write rules are evaluated with, or nil if no rules apply.
  var writeAccess: WriteAccess? {
    switch self {
    case .anybody(let access): access
    case .nobody(let access): access
    case .known(let known): known.writeAccess
    }
  }

  /// The digest that stands for the identity where clients are counted, or nil if the requester has no identity.
  var mark: IdentityMark? {
    if case .known(let known) = self { known.mark } else { nil }
  }
}

/// An identity, with everything that is derived from it once for all its requests.
package final class KnownRequester: Sendable {
  let identity: Identity
  /// The viewer whose read rules apply; nil for an admin, to whom no rules apply.
  let viewer: Viewer?
  /// True for the identity of a node, which may follow this server.
  let isNode: Bool
  /// The session whose cookie identifies the requester, or nil if a token does.
  let session: SessionDigest?
  /// The digest that stands for the identity where clients are counted.
  let mark: IdentityMark
  /// The access that the write rules are evaluated with; nil for an admin, to whom no rules apply.
  let writeAccess: WriteAccess?

  init(_ identity: Identity, viewer: Viewer?, isNode: Bool, session: SessionDigest?, in schema: Schema) {
    self.identity = identity
    self.viewer = viewer
    self.isNode = isNode
    self.session = session
    mark = IdentityMark(of: identity.subject)
    writeAccess = viewer.map { WriteAccess(claims: identity.claims, viewer: $0, in: schema) }
  }
}

/// The identity that a stream was opened for.
struct StreamOwner: Sendable {
  let identity: Identity
  /// The session that the stream ends with; nil if a token opened it.
  let session: SessionDigest?

  /// Creates the owner from the sender of a request, or returns nil if the sender has no identity.
  init?(_ requester: Requester) {
    guard case .known(let known) = requester else { return nil }
    (identity, session) = (known.identity, known.session)
  }
}

/// The owner of each stream that was opened for a known identity.
final class StreamOwners: Sendable {
  private let owners = Locked<[StreamID: StreamOwner]>([:])

  /// Records the owner of a stream that is opened.
  func add(_ id: StreamID, _ owner: StreamOwner) { owners.withLock { $0[id] = owner } }

  /// Forgets a stream that has ended.
  func remove(_ id: StreamID) { owners.withLock { $0[id] = nil } }

  /// Returns the `sub` of the identity that a stream was opened for, or nil if there is none.
  func subject(of id: StreamID) -> ExactText? { owners.withLock { $0[id].map { ExactText($0.identity.subject) } } }

  /// Removes and returns the streams whose owners are no longer `isValid`. Each stream is returned once.
  func takeInvalid(_ isValid: (StreamOwner) -> Bool) -> [StreamID] {
    // One token may have thousands of streams.
    let all = owners.withLock { $0 }
    let invalid = all.filter { !isValid($0.value) }.map(\.key)
    guard !invalid.isEmpty else { return [] }
    owners.withLock { owners in
      for id in invalid { owners[id] = nil }
    }
    return invalid
  }
}

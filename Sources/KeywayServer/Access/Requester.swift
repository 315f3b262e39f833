import CEL
import HTTPServer
import HTTPTypes
package import KeyValueModel
import Support

/// Who asks, as far as it is known.
package enum Requester: Sendable {
  /// Any client of a server without keys. What it may do is nil where the schema has no rules.
  case anybody(WriteAccess?)
  /// A client without a token.
  case nobody(WriteAccess)
  /// The holder of a verified token.
  case known(KnownRequester)

  /// Whether what is for admins is for them.
  var isAdmin: Bool {
    switch self {
    case .anybody: true
    case .nobody: false
    case .known(let known): known.viewer == nil
    }
  }

  /// True if it may follow this server: an identity of a node, or an admin.
  var mayFollow: Bool {
    if case .known(let known) = self, known.isNode { true } else { isAdmin }
  }

  /// What the rules let them read; nil where they are asked no rule.
  var viewer: Viewer? {
    switch self {
    case .anybody(let access): access?.viewer
    case .nobody(let access): access.viewer
    case .known(let known): known.viewer
    }
  }

  /// The claims, where a token was sent.
  package var identity: Identity? {
    if case .known(let known) = self { known.identity } else { nil }
  }

  /// The `sub` of the identity, or nil if nobody is known.
  var subject: String? { identity?.subject }

  /// Whether rules are asked for someone without a token.
  var isUnknown: Bool { viewer != nil && identity == nil }

  /// Who writes, where rules are asked.
  var writeAccess: WriteAccess? {
    switch self {
    case .anybody(let access): access
    case .nobody(let access): access
    case .known(let known): known.writeAccess
    }
  }

  /// What stands for the identity where clients are counted; nil where there is none.
  var mark: IdentityMark? {
    if case .known(let known) = self { known.mark } else { nil }
  }
}

/// An identity, with what follows from it once for all its requests.
package final class KnownRequester: Sendable {
  let identity: Identity
  /// What it may read; nil for an admin, who is asked no rule.
  let viewer: Viewer?
  /// True for the identity of a node, which may follow this server.
  let isNode: Bool
  /// The session whose cookie says who asks; nil if a token does.
  let session: SessionDigest?
  /// What stands for it where clients are counted.
  let mark: IdentityMark
  /// Who writes, where rules are asked.
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

  /// The sender of a request; nil for nobody.
  init?(_ requester: Requester) {
    guard case .known(let known) = requester else { return nil }
    (identity, session) = (known.identity, known.session)
  }
}

/// For whom each stream was opened, where that is known.
final class StreamOwners: Sendable {
  private let owners = Locked<[StreamID: StreamOwner]>([:])

  /// A stream is opened for someone.
  func add(_ id: StreamID, _ owner: StreamOwner) { owners.withLock { $0[id] = owner } }

  /// A stream has ended.
  func remove(_ id: StreamID) { owners.withLock { $0[id] = nil } }

  /// The `sub` of whom a stream was opened for; nil where that is nobody.
  func subject(of id: StreamID) -> ExactText? { owners.withLock { $0[id].map { ExactText($0.identity.subject) } } }

  /// The streams whose owners are not `isValid` any more. They are told of once.
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

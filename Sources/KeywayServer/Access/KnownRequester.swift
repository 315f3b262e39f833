import KeyValueModel

/// An identity, with what follows from it once for all its requests.
final class KnownRequester: Sendable {
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

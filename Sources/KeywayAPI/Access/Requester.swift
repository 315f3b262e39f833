import KeyValueModel
import Tokens

/// Who asks, as far as it is known.
enum Requester: Sendable {
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
  var identity: Identity? {
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

import KeyValueModel
import Tokens

/// Who asks, as far as it is known.
enum Requester: Sendable {
  /// Any client of a server without keys. The viewer is nil where the schema has no rules.
  case anybody(Viewer?)
  /// A client without a token.
  case nobody(Viewer)
  /// The claims of a verified token. The viewer is nil for an admin, who is asked no rule.
  case known(Identity, Viewer?)

  /// Whether what is for admins is for them.
  var isAdmin: Bool {
    switch self {
    case .anybody: true
    case .nobody: false
    case .known(_, let viewer): viewer == nil
    }
  }

  /// What the rules let them read; nil where they are asked no rule.
  var viewer: Viewer? {
    switch self {
    case .anybody(let viewer): viewer
    case .nobody(let viewer): viewer
    case .known(_, let viewer): viewer
    }
  }

  /// The claims, where a token was sent.
  var identity: Identity? {
    if case .known(let identity, _) = self { identity } else { nil }
  }

  /// Whether a token was needed to be known, and none was sent.
  var isUnknown: Bool {
    if case .nobody = self { true } else { false }
  }

  /// Who writes, where rules are asked.
  var writeAccess: WriteAccess? { viewer.map { WriteAccess(claims: identity?.claims, viewer: $0) } }
}

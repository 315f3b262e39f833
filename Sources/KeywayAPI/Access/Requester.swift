import KeyValueModel
import Tokens

/// Who asks, as far as it is known.
enum Requester: Sendable {
  /// Any client of a server without keys: may do everything.
  case anybody
  /// A client without a token.
  case nobody
  /// The claims of a verified token, and whether its holder may do everything.
  case known(Identity, isAdmin: Bool)

  /// Whether no rule is asked.
  var mayDoEverything: Bool {
    switch self {
    case .anybody: true
    case .nobody: false
    case .known(_, let isAdmin): isAdmin
    }
  }

  /// The claims, where a token was sent.
  var identity: Identity? {
    if case .known(let identity, _) = self { identity } else { nil }
  }
}

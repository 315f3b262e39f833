/// Why a journal that several nodes share is over for one of them.
package enum JournalEnd: Hashable, Sendable {
  /// It is another one, or has forgotten what comes next: the node can begin anew with what it is now.
  case otherHistory(String)
  /// It has gone on under another schema, which this node does not have.
  case otherSchema(String)

  /// The reason in words, for the operator.
  package var reason: String {
    switch self {
    case .otherHistory(let reason), .otherSchema(let reason): reason
    }
  }
}

import HTTPServer
import HTTPTypes
import KeyValueModel

/// The conditions of a `GET` or `HEAD` of what has a tag: `If-Match`, and then `If-None-Match` (RFC 9110 §13.2.2).
struct ReadConditions: Sendable {
  private let match: String?
  private let noneMatch: String?

  /// Those of a request.
  init(of request: borrowing Request) { (match, noneMatch) = (request.header(.ifMatch), request.header(.ifNoneMatch)) }

  /// Whether the client has the version of this tag, which stands without its quotation marks. Throws `stale-revision`
  /// where it wants another one, and `malformed-query` where a header is no list of tags.
  func isUnchanged(_ tag: String) throws(Problem) -> Bool {
    try isUnchanged(tag) { condition in condition.names(tag, weakly: false) }
  }

  /// The same for what was last changed at a revision; a cursor up to `present` is as good as its tag.
  func isUnchanged(_ tag: Cursor, upTo present: Revision) throws(Problem) -> Bool {
    try isUnchanged(tag.description) { condition in
      if case .any = condition { return true }
      return condition.latestRevision(of: tag.epoch, upTo: present).map { $0 >= tag.revision } ?? false
    }
  }

  private func isUnchanged(_ tag: String, _ holds: (EntityTagCondition) -> Bool) throws(Problem) -> Bool {
    if let match, try !holds(EntityTagCondition(match, header: "If-Match")) {
      throw Problem(.staleRevision, "what is there is not what If-Match names").with(.eTag, "\"\(tag)\"")
    }
    guard let noneMatch else { return false }
    return try EntityTagCondition(noneMatch, header: "If-None-Match").names(tag, weakly: true)
  }
}

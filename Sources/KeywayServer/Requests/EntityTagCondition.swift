import HTTPServer
import HTTPTypes
package import KeyValueModel
import Store

/// An `If-Match` or `If-None-Match` header (RFC 9110 §13.1).
package enum EntityTagCondition: Sendable {
  /// `*`: any existing resource.
  case any
  /// The tags. Those of weak tags are without `W/`.
  case tags([(cursor: String, isWeak: Bool)])

  /// Parses the text of a header. Throws `malformed-query` if it is not a list of entity tags.
  package init(_ text: String, header: String) throws(Problem) {
    if text.trimmingSpaces() == "*" {
      self = .any
      return
    }
    var tags: [(cursor: String, isWeak: Bool)] = []
    var rest = text[...]
    while let start = rest.firstIndex(where: { $0 != "," && $0 != " " && $0 != "\t" }) {
      rest = rest[start...]
      let isWeak = rest.hasPrefix("W/")
      if isWeak { rest = rest.dropFirst(2) }
      // A tag may hold commas, but no quotation mark (RFC 9110 §8.8.3).
      guard rest.first == "\"", let end = rest.dropFirst().firstIndex(of: "\"") else {
        throw Problem(.malformedQuery, "\(header) must be a list of entity tags in quotation marks, or *")
      }
      tags.append((String(rest[rest.index(after: rest.startIndex)..<end]), isWeak))
      rest = rest[rest.index(after: end)...]
    }
    self = .tags(tags)
  }

  /// Returns true if the condition is `*` or names a tag, given without its quotation marks. Compares strongly, as
  /// `If-Match` requires, or weakly, as `If-None-Match` does (RFC 9110 §8.8.3.2).
  package func names(_ tag: String, weakly: Bool) -> Bool {
    switch self {
    case .any: true
    case .tags(let tags): tags.contains { $0.cursor == tag && (weakly || !$0.isWeak) }
    }
  }

  /// Returns the latest revision of `epoch`, not after `present`, that a strong tag names. A resource that is unchanged
  /// since an earlier one is unchanged since this one. Nil if there is none: the condition then fails.
  package func latestRevision(of epoch: String, upTo present: Revision) -> Revision? {
    guard case .tags(let tags) = self else { return nil }
    return tags.lazy
      .filter { !$0.isWeak }
      .compactMap { Cursor($0.cursor) }
      .filter { $0.epoch == epoch && $0.revision <= present }
      .map(\.revision)
      .max()
  }

  /// Returns the revisions of `epoch` that the tags name, including weak tags.
  package func revisions(of epoch: String) -> Set<Revision> {
    guard case .tags(let tags) = self else { return [] }
    return Set(tags.lazy.compactMap { Cursor($0.cursor) }.filter { $0.epoch == epoch }.map(\.revision))
  }

  /// True if the condition names a tag that is not a revision.
  var namesContent: Bool {
    guard case .tags(let tags) = self else { return false }
    return tags.contains { Cursor($0.cursor) == nil }
  }
}

/// The conditions of a `GET` or `HEAD` of a resource with a tag: `If-Match`, then `If-None-Match` (RFC 9110 §13.2.2).
struct ReadConditions: Sendable {
  private let match: String?
  private let noneMatch: String?

  /// Reads the conditions of a request.
  init(of request: borrowing Request) { (match, noneMatch) = (request.header(.ifMatch), request.header(.ifNoneMatch)) }

  /// Returns true if the client has the version with this tag, which is given without its quotation marks. Throws
  /// `stale-revision` if the client requires another version, and `malformed-query` if a header is not a list of tags.
  func isUnchanged(_ tag: String) throws(Problem) -> Bool {
    try isUnchanged(tag) { condition in condition.names(tag, weakly: false) }
  }

  /// Returns true if the client has the version last changed at the revision of `tag`. In `If-Match`, a cursor from
  /// that revision up to `present` is as good as the tag itself. Throws like `isUnchanged(_:)`.
  func isUnchanged(_ tag: Cursor, upTo present: Revision) throws(Problem) -> Bool {
    guard match != nil || noneMatch != nil else { return false }
    return try isUnchanged(tag.description) { condition in
      if case .any = condition { return true }
      return condition.latestRevision(of: tag.epoch, upTo: present).map { $0 >= tag.revision } ?? false
    }
  }

  private func isUnchanged(_ tag: String, _ holds: (EntityTagCondition) -> Bool) throws(Problem) -> Bool {
    if let match, try !holds(EntityTagCondition(match, header: "If-Match")) {
      throw Problem(.staleRevision, "If-Match does not match the current ETag").with(.eTag, "\"\(tag)\"")
    }
    guard let noneMatch else { return false }
    return try EntityTagCondition(noneMatch, header: "If-None-Match").names(tag, weakly: true)
  }
}

/// `If-Match` and `If-None-Match` of a write (RFC 9110 §13.1), as conditions of its transaction.
struct WriteConditions: Sendable {
  let store: Store
  let limits: RequestLimits

  /// Returns the conditions of a request for a write, as `viewer` sees its subject. Throws `malformed-query` if a
  /// header is not a list of tags.
  func preconditions(
    of request: borrowing Request, about subject: Write.Subject, for viewer: Viewer?
  ) throws(Problem) -> [Precondition] {
    let (match, noneMatch) = (request.header(.ifMatch), request.header(.ifNoneMatch))
    // A new object and a transaction have no ETag, so If-Match cannot hold.
    guard let reference = subject.reference else { return match == nil ? [] : [.impossible] }
    guard match != nil || noneMatch != nil else { return [] }
    var keyPath: String?
    if case .keyPath(_, let text) = subject {
      // A path that cannot be written is refused for that reason, regardless of the conditions (RFC 9110 §13.2.1).
      // Reading a path through several to-manys could take the writer very long.
      guard isWritable(text, of: reference) else { return [] }
      keyPath = text
    }
    var preconditions: [Precondition] = []
    if let noneMatch {
      let condition = try EntityTagCondition(noneMatch, header: "If-None-Match")
      if case .any = condition {
        preconditions.append(.absent(reference))
      } else {
        preconditions.append(.differs(reference, keyPath: keyPath, from: condition.revisions(of: store.epoch)))
        if let seen = viewer.flatMap({ guarded(subject, $0) }) {
          preconditions.append(
            .holds(reference) { [epoch = store.epoch, limits] state in
              seen.tag(in: state, epoch: epoch, limits).map { !condition.names($0, weakly: true) } ?? true
            })
        }
      }
    }
    guard let match else { return preconditions }
    let condition = try EntityTagCondition(match, header: "If-Match")
    // A missing object is `unknown-object` to every method but the one that would create it (RFC 9110 §13.2.1).
    if request.method == .put, keyPath == nil { preconditions.append(.exists(reference)) }
    if case .any = condition { return preconditions }
    if let seen = viewer.flatMap({ guarded(subject, $0) }), condition.namesContent {
      return preconditions + [
        .holds(reference) { [epoch = store.epoch, limits] state in
          seen.tag(in: state, epoch: epoch, limits).map { condition.names($0, weakly: false) } ?? false
        }
      ]
    }
    // If no tag can match, revision 0 makes the condition fail: no existing object is unchanged since then.
    let since = condition.latestRevision(of: store.epoch, upTo: store.snapshot.revision) ?? 0
    let unchanged = keyPath.map { Precondition.unchangedKeyPath(reference, $0, since: since) }
    return preconditions + [unchanged ?? .unchangedObject(reference, since: since)]
  }

  /// Returns the subject of a write as seen by a viewer who may not read everything. Nil if it has no tag.
  func guarded(_ subject: Write.Subject, _ viewer: Viewer) -> GuardedObject? {
    switch subject {
    case .object(let reference): return GuardedObject(reference: reference, viewer: viewer)
    case .keyPath(let reference, let text):
      guard let entity = store.schema.entity(of: reference),
        let path = try? store.schema.resolve(text, from: entity)
      else { return nil }
      return GuardedObject(reference: reference, keyPaths: [path], viewer: viewer)
    case .newObject, .transaction: return nil
    }
  }

  /// Returns true if a key path can be written: it has no operator, and does not lead through a to-many.
  private func isWritable(_ keyPath: String, of reference: Reference) -> Bool {
    guard let entity = store.schema.entity(of: reference),
      let path = try? store.schema.resolveObservable(keyPath, from: entity)
    else { return false }
    return path.operation == nil
  }
}

extension Cursor {
  /// The cursor as a strong entity tag: the `ETag` of a resource last changed at its revision (RFC 9110 §8.8.3).
  package var entityTag: String { "\"\(self)\"" }
}

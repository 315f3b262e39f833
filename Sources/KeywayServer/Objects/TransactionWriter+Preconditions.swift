import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `If-Match` and `If-None-Match` of a write (RFC 9110 §13.1), as conditions of its transaction.
extension TransactionWriter {
  func preconditions(
    of request: borrowing Request, about subject: Write.Subject, for viewer: Viewer?
  ) throws(Problem) -> [Precondition] {
    let (match, noneMatch) = (request.header(.ifMatch), request.header(.ifNoneMatch))
    // What is new, and a transaction, have no ETag that If-Match could hold for.
    guard let reference = subject.reference else { return match == nil ? [] : [.impossible] }
    guard match != nil || noneMatch != nil else { return [] }
    var keyPath: String?
    if case .keyPath(_, let text) = subject {
      // What cannot be written anyway is refused for that, whatever the conditions say (RFC 9110 §13.2.1): to look at a
      // path through one to-many after the other could take the writer very long.
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
    // What is not there is `unknown-object` to every method but the one that would make it (RFC 9110 §13.2.1).
    if request.method == .put, keyPath == nil { preconditions.append(.exists(reference)) }
    if case .any = condition { return preconditions }
    if let seen = viewer.flatMap({ guarded(subject, $0) }), condition.namesContent {
      return preconditions + [
        .holds(reference) { [epoch = store.epoch, limits] state in
          seen.tag(in: state, epoch: epoch, limits).map { condition.names($0, weakly: false) } ?? false
        }
      ]
    }
    // Where no tag can hold, revision 0 says so: nothing that is there is unchanged since then.
    let since = condition.latestRevision(of: store.epoch, upTo: store.snapshot.revision) ?? 0
    let unchanged = keyPath.map { Precondition.unchangedKeyPath(reference, $0, since: since) }
    return preconditions + [unchanged ?? .unchangedObject(reference, since: since)]
  }

  /// What a write is about as someone sees it who may not read everything; nil where it has no tag.
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

  /// Whether a key path is one of those that can be written: without an operator, and not through a to-many.
  private func isWritable(_ keyPath: String, of reference: Reference) -> Bool {
    guard let entity = store.schema.entity(of: reference),
      let path = try? store.schema.resolveObservable(keyPath, from: entity)
    else { return false }
    return path.operation == nil
  }
}

import Dispatch
import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// The way of a write from a request to the store and back.
struct TransactionWriter: Sendable {
  /// Makes the response to a write that succeeded, from its commit and the state that the transaction left. Called
  /// once: on the writer's thread, or where the object is large on another.
  typealias Rendering = @Sendable (_ commit: Commit, _ state: borrowing ModelState) -> Response

  let store: Store
  /// Where what is large is prepared.
  let readings: Readings
  let limits: RequestLimits

  /// From how many bytes on an object's patches are applied, and its answers encoded, apart from the writer.
  private static let largeBytes = 32_768
  /// Where the answers about large objects are encoded: the next write need not wait for that.
  private static let encoding = DispatchQueue(
    label: "keyway.answers", qos: .userInitiated, attributes: .concurrent)

  /// Hands a transaction to the store. What `rendering` gives is sent once the commit is published.
  func submit(
    _ write: Write, _ request: borrowing Request, _ context: RequestContext, rendering: @escaping Rendering
  ) throws(Problem) -> HandlerResponse {
    let size = write.operations.reduce(0) { $0 + $1.size }
    guard size <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations,
        "\(size) operations and objects made in place; a transaction has at most \(limits.transactionOperations)")
    }
    var transaction = Transaction(
      write.operations, preconditions: try preconditions(of: request, about: write.subject, for: context.viewer),
      writer: try Self.writer(of: request))
    transaction.access = context.requester.writeAccess
    transaction.author = context.requester.subject
    let isLarge =
      request.body().count > MemoryLedger.uncountedBytes || write.isPatch(ofMoreThan: Self.largeBytes, in: store)
    let rendered: Rendering = { [store] commit, state in
      var response = rendering(commit, state)
      response.fields[.keywayCursor] = store.cursor(commit.revision).description
      return response
    }
    let (kept, attachment) = attachment(for: write, context, rendered)
    // What was made of the body says better how long the writer takes than its length does.
    let (client, bytes) = (request.client, max(request.body().count, request.heldBytes))
    return .deferred { [self, transaction] completion in
      let submission = Submission(
        client: client, bytes: bytes, isLarge: isLarge, write: write, transaction: transaction, viewer: context.viewer,
        attachment: attachment, precedent: context.nodes.precedent, givenBack: context.nodes.givenBack,
        rendered: rendered, kept: kept)
      guard isLarge else { return submit(submission, completion) }
      readings.perform(for: client, completion) {
        var submission = submission
        completion.beginWork()
        submission.transaction.prepare(in: store.snapshot.state, limits: store.limits.transaction)
        completion.endWork()
        submit(submission, completion)
      }
    }
  }

  /// What is kept with the commit of a write that has a name, its client's or the nodes'. The response is made for
  /// that, and sent afterwards, as `kept` says; but of a large object that nodes alone name, it is not kept: who asks
  /// what became of the write hears that it was done, and by which commit.
  private func attachment(
    for write: Write, _ context: RequestContext, _ rendered: @escaping Rendering
  ) -> (kept: Locked<Response?>?, attachment: Store.Attachment?) {
    guard context.idempotency != nil || context.nodes.passed != nil else { return (nil, nil) }
    let kept = Locked<Response?>(nil)
    let (request, passed) = (context.idempotency, context.nodes.passed)
    return (
      kept,
      { [store] commit, state in
        var response = Response(status: .noContent)
        if request == nil, write.isAbout(moreThan: Self.largeBytes, in: state) {
          response.fields[.keywayCursor] = store.cursor(commit.revision).description
          kept.withLock { $0 = nil }
        } else {
          response = rendered(commit, state)
          kept.withLock { [response] in $0 = response }
        }
        guard let passed else { return StoredResponse(request: request, response: response).bytes }
        return PassedAttachment(passed, request, response).bytes
      }
    )
  }

  /// What is handed to the store, and what its answer is made with.
  private struct Submission: Sendable {
    let client: ClientAddress
    /// The bytes that the client sent, or those of memory that they were made into.
    let bytes: Int
    /// True where it was prepared, and its time on the writer counts for the client.
    let isLarge: Bool
    let write: Write
    var transaction: Transaction
    /// What the client may read, where that is not everything.
    let viewer: Viewer?
    let attachment: Store.Attachment?
    /// What another node has answered to the same request.
    let precedent: (@Sendable () -> Response?)?
    /// Gives what is answered where other nodes are always first.
    let givenBack: (@Sendable () -> Response)?
    let rendered: Rendering
    /// The response that is kept with the commit, where one is.
    let kept: Locked<Response?>?
  }

  private func submit(_ submission: Submission, _ completion: Completion) {
    let (write, rendered, kept) = (submission.write, submission.rendered, submission.kept)
    let isAccepted = store.submit(
      submission.transaction, of: submission.client.hashValue, bytes: submission.bytes,
      attachment: submission.attachment, precedent: Self.precedent(submission, completion),
      giveBack: Self.giveBack(submission, completion),
      willBegin: Self.meter(submission, completion)
    ) { [self] outcome, state, revision in
      if submission.isLarge { completion.endWork() }
      let isKept = kept?.withLock { $0 != nil } ?? false
      if case .success(let commit) = outcome, !isKept, write.isAbout(moreThan: Self.largeBytes, in: state) {
        let state = copy state
        return { failure in
          if let failure { return completion.respond(Problem(.storeUnavailable, failure.reason).response) }
          Self.encoding.async {
            completion.beginWork()
            let response = rendered(commit, state)
            completion.endWork()
            completion.respond(response)
          }
        }
      }
      let response: Response =
        switch outcome {
        case .success(let commit): kept?.withLock { $0 } ?? rendered(commit, state)
        case .failure(let error):
          refusal(error, of: write, for: submission.viewer, state).judged(by: store.cursor(revision)).response
        }
      return { failure in
        completion.respond(failure.map { Problem(.storeUnavailable, $0.reason).response } ?? response)
      }
    }
    if !isAccepted {
      completion.respond(Problem(.overloaded, "too many writes wait; try again").response)
    }
  }

  /// Begins to count the writer's time on a large write for its client.
  private static func meter(_ submission: Submission, _ completion: Completion) -> (@Sendable () -> Void)? {
    guard submission.isLarge else { return nil }
    return { completion.beginWork() }
  }

  /// Gives the client the answer of another node that has carried out the same request.
  private static func precedent(_ submission: Submission, _ completion: Completion) -> Store.Precedent? {
    guard let find = submission.precedent else { return nil }
    return { () -> (@Sendable (StoreUnavailable?) -> Void)? in
      guard let response = find() else { return nil }
      return { (_: StoreUnavailable?) in completion.respond(response) }
    }
  }

  /// Has a write go where others are not first each time.
  private static func giveBack(_ submission: Submission, _ completion: Completion) -> Store.GivingBack? {
    guard let response = submission.givenBack else { return nil }
    return { completion.respond(response()) }
  }

  /// The problem of what the model refuses; where a condition failed, with the present `ETag`.
  private func refusal(
    _ error: ModelError, of write: Write, for viewer: Viewer?, _ state: borrowing ModelState
  ) -> Problem {
    let problem = write.refusal(error)
    guard error.code == .staleRevision, let reference = write.subject.reference,
      let record = state.record(reference)
    else { return problem }
    if let viewer {
      let tag = guarded(write.subject, viewer).flatMap { $0.tag(in: state, epoch: store.epoch, limits) }
      return problem.with(.eTag, tag.map { "\"\($0)\"" })
    }
    var revision = state.revision(of: reference)
    if case .keyPath(_, let text) = write.subject, let path = try? store.schema.resolve(text, from: record.entity) {
      revision = state.revision(of: reference, along: path)
    }
    return problem.with(.eTag, store.cursor(revision).entityTag)
  }

  private static func writer(of request: borrowing Request) throws(Problem) -> String? {
    guard let name = request.header(.keywayWriter) else { return nil }
    guard (1...128).contains(name.utf8.count), name.isVisibleASCII else {
      throw Problem(.malformedQuery, "Keyway-Writer is 1 to 128 visible ASCII characters")
    }
    return name
  }

  /// What `read` makes of a request for an object or one of its key paths. Where the request is wrong, what its path
  /// names is looked at first: an object that is not there, and a key that its entity does not have.
  func reading<Result>(
    _ reference: Reference, _ keyPath: String? = nil, for viewer: Viewer?, _ read: () throws(Problem) -> Result
  ) throws(Problem) -> Result {
    do throws(Problem) {
      return try read()
    } catch {
      let snapshot = store.snapshot
      do throws(Problem) {
        let record = try snapshot.state.requireRecord(reference, for: viewer)
        if let keyPath { _ = try store.schema.resolve(keyPath, from: record.entity, of: reference) }
      } catch {
        throw error.judged(by: store.cursor(snapshot.revision))
      }
      throw error
    }
  }
}

// MARK: - Conditions

/// `If-Match` and `If-None-Match` of a write (RFC 9110 §13.1), as conditions of its transaction.
extension TransactionWriter {
  private func preconditions(
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
  private func guarded(_ subject: Write.Subject, _ viewer: Viewer) -> GuardedObject? {
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

/// What a request writes: one transaction.
struct Write: Sendable {
  /// What a write is about, for its conditions and for the present `ETag`.
  enum Subject: Sendable {
    case object(Reference)
    case keyPath(Reference, String)
    /// An object that gets its id from the server: it has no `ETag` yet.
    case newObject
    /// Any number of objects, which have no `ETag` in common.
    case transaction

    /// The object; nil where there is none with an `ETag`.
    var reference: Reference? {
      switch self {
      case .object(let reference), .keyPath(let reference, _): reference
      case .newObject, .transaction: nil
      }
    }
  }

  let operations: [Operation]
  let subject: Subject
  /// The ids that the server made for objects of this write.
  var newIDs: Set<String> = []

  /// Whether the object that it is about has more bytes of JSON than this in a state.
  fileprivate func isAbout(moreThan bytes: Int, in state: borrowing ModelState) -> Bool {
    guard let reference = subject.reference, let record = state.record(reference) else { return false }
    return record.textBytes > bytes
  }

  /// Whether it is a JSON patch of an object with more bytes of JSON than this.
  fileprivate func isPatch(ofMoreThan bytes: Int, in store: Store) -> Bool {
    guard case .jsonPatch? = operations.first else { return false }
    return isAbout(moreThan: bytes, in: store.snapshot.state)
  }

  /// How many operations the client sent: what some say of a lifetime is one of its own to the model.
  private var sentCount: Int { operations.count { !$0.isLifetime } }

  /// Where the operation at `index` stood among those that the client sent; nil where it sent only one.
  private func sentPosition(_ index: Int) -> Int? {
    sentCount > 1 ? max(0, operations.prefix(index + 1).count { !$0.isLifetime } - 1) : nil
  }

  /// What the model refuses, as it is said to the client: an object that got its id from the server, and that now never
  /// was, is not named; and a transaction of one operation has an index too.
  fileprivate func refusal(_ error: ModelError) -> Problem {
    var error = error
    if let object = error.object, let id = object.split(separator: "/").last, newIDs.contains(String(id)) {
      var unnamed = ModelError(error.code, error.detail.replacing(object, with: "the new object"))
      (unnamed.keyPath, unnamed.operation) = (error.keyPath, error.operation)
      error = unnamed
    }
    error.operation = error.operation.flatMap(sentPosition)
    if case .transaction = subject, sentCount == 1 { error.operation = 0 }
    return Problem(error)
  }
}

/// Makes ids for the new objects of one request, and keeps which they are.
final class NewIDs {
  private let makeID: () -> String
  private(set) var ids: Set<String> = []

  init(_ makeID: @escaping () -> String) {
    self.makeID = makeID
  }

  /// An id that no object has.
  func make() -> String {
    let id = makeID()
    ids.insert(id)
    return id
  }
}

extension Operation {
  fileprivate var isLifetime: Bool { if case .lifetime = self { true } else { false } }

  /// How many things it does: itself, and the objects that it makes in place.
  fileprivate var size: Int {
    switch self {
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      1 + members.count { if case .object = $0 { true } else { false } }
    // A part of the operation before it.
    case .lifetime: 0
    default: 1
    }
  }
}

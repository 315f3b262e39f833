import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// Makes transactions of writes, and hands them to the store.
struct TransactionWriter: Sendable {
  /// Makes the response to a write that succeeded, from its commit and the state that the transaction left. Called
  /// once: on the writer's thread, or where the object is large on another.
  typealias Rendering = @Sendable (_ commit: Commit, _ state: borrowing ModelState) -> Response

  let store: Store
  /// Where what is large is prepared.
  let readings: Readings
  let limits: RequestLimits
  /// Knows the responses of other nodes to requests with a key.
  let idempotency: IdempotentHandlers

  private var conditions: WriteConditions { WriteConditions(store: store, limits: limits) }

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
      write.operations,
      preconditions: try conditions.preconditions(of: request, about: write.subject, for: context.viewer),
      writer: try Self.writer(of: request))
    transaction.access = context.requester.writeAccess
    transaction.author = context.requester.subject
    let isLarge =
      request.body().count > MemoryLedger.uncountedBytes
      || write.isPatch(ofMoreThan: PendingWrite.largeBytes, in: store)
    // What was made of the body says better how long the writer takes than its length does.
    let (client, bytes) = (request.client, max(request.body().count, request.heldBytes))
    return .deferred { [self, transaction] completion in
      @Sendable func handOver(_ transaction: Transaction) {
        let pending = PendingWrite(
          transaction, of: client, bytes: bytes, isLarge: isLarge, write, context, by: self, completion,
          rendering: rendering)
        guard !store.submit(pending) else { return }
        completion.respond(Problem(.overloaded, "too many writes wait; try again").response)
      }
      guard isLarge else { return handOver(transaction) }
      readings.perform(for: client, completion) {
        var transaction = transaction
        completion.beginWork()
        transaction.prepare(in: store.snapshot.state, limits: store.limits.transaction)
        completion.endWork()
        handOver(transaction)
      }
    }
  }

  /// The problem of what the model refuses; where a condition failed, with the present `ETag`.
  func refusal(
    _ error: ModelError, of write: Write, for viewer: Viewer?, _ state: borrowing ModelState
  ) -> Problem {
    let problem = write.refusal(error)
    guard error.code == .staleRevision, let reference = write.subject.reference,
      let record = state.record(reference)
    else { return problem }
    if let viewer {
      let tag = conditions.guarded(write.subject, viewer).flatMap { $0.tag(in: state, epoch: store.epoch, limits) }
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
  func isAbout(moreThan bytes: Int, in state: borrowing ModelState) -> Bool {
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

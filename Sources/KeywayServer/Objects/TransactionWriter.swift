import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// Makes transactions of writes, and submits them to the store.
///
/// A class, since each write keeps a reference to it until it is answered.
final class TransactionWriter: Sendable {
  /// Makes the response to a successful write, from its commit and the state after the transaction. Called once: on the
  /// writer's thread or, if the object is large, on another.
  typealias Rendering = @Sendable (_ commit: Commit, _ state: borrowing ModelState) -> Response

  let store: Store
  /// The pool whose threads prepare large writes.
  let readings: Readings
  let limits: RequestLimits
  /// The responses of other nodes to requests with an `Idempotency-Key`.
  let idempotency: IdempotentHandlers

  /// Creates a writer to a store.
  init(store: Store, readings: Readings, limits: RequestLimits, idempotency: IdempotentHandlers) {
    (self.store, self.readings, self.limits, self.idempotency) = (store, readings, limits, idempotency)
  }

  private var conditions: WriteConditions { WriteConditions(store: store, limits: limits) }

  /// Submits a transaction to the store. The response that `rendering` returns is sent once the commit is published.
  func submit(
    _ write: Write, _ request: borrowing Request, _ context: RequestContext, rendering: @escaping Rendering
  ) throws(Problem) -> HandlerResponse {
    let size = write.operations.reduce(0) { $0 + $1.size }
    guard size <= limits.transactionOperations else {
      throw Problem(
        .tooManyOperations,
        "\(size) operations and new objects exceed the limit of \(limits.transactionOperations)")
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
    // The size of the parsed body predicts the writer's time better than the length of its text.
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
      readings.perform(for: client, completion) { [store] in
        var transaction = transaction
        completion.beginWork()
        transaction.prepare(in: store.snapshot.state, limits: store.limits.transaction)
        completion.endWork()
        handOver(transaction)
      }
    }
  }

  /// Returns the problem of a write that the model refuses. If a condition failed, it has the present `ETag`.
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
      throw Problem(.malformedQuery, "Keyway-Writer must be 1 to 128 visible ASCII characters")
    }
    return name
  }

  /// Returns the result of `read` for a request for an object or one of its key paths. If `read` throws, errors of the
  /// path take precedence: an object that does not exist, and a key that its entity does not have.
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

/// The write of a request: one transaction.
struct Write: Sendable {
  /// The subject of a write, for its conditions and for the present `ETag`.
  enum Subject: Sendable {
    case object(Reference)
    case keyPath(Reference, String)
    /// An object with an id from the server. It has no `ETag` yet.
    case newObject
    /// Any number of objects, which have no common `ETag`.
    case transaction

    /// The object, or nil if the subject has no `ETag`.
    var reference: Reference? {
      switch self {
      case .object(let reference), .keyPath(let reference, _): reference
      case .newObject, .transaction: nil
      }
    }
  }

  let operations: [Operation]
  let subject: Subject
  /// The ids that the server made for the objects of this write.
  var newIDs: Set<String> = []

  /// Returns true if the object of the write has more bytes of JSON than this in a state.
  func isAbout(moreThan bytes: Int, in state: borrowing ModelState) -> Bool {
    guard let reference = subject.reference, let record = state.record(reference) else { return false }
    return record.textBytes > bytes
  }

  /// Returns true if the write is a JSON Patch of an object with more bytes of JSON than this.
  fileprivate func isPatch(ofMoreThan bytes: Int, in store: Store) -> Bool {
    guard case .jsonPatch? = operations.first else { return false }
    return isAbout(moreThan: bytes, in: store.snapshot.state)
  }

  /// The number of operations that the client sent. In the model, the lifetime of an operation is an operation of its
  /// own.
  private var sentCount: Int { operations.count { !$0.isLifetime } }

  /// Returns the index, among the operations that the client sent, of the operation at `index`. Nil if the client sent
  /// only one.
  private func sentPosition(_ index: Int) -> Int? {
    sentCount > 1 ? max(0, operations.prefix(index + 1).count { !$0.isLifetime } - 1) : nil
  }

  /// Returns the problem that is sent for an error of the model. It does not name an object with an id from the server,
  /// since that object was never created. In a transaction, it has an operation index even if there is only one
  /// operation.
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

extension Operation {
  fileprivate var isLifetime: Bool { if case .lifetime = self { true } else { false } }

  /// The number of operations that it counts as: one, and one for each object that it creates in place.
  fileprivate var size: Int {
    switch self {
    case .insert(_, _, let members, _), .replace(_, _, _, let members), .mutateSet(_, _, _, let members):
      1 + members.count { if case .object = $0 { true } else { false } }
    // A lifetime is a part of the operation before it.
    case .lifetime: 0
    default: 1
    }
  }
}

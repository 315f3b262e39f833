import KeyValueModel
import Store

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
  func isPatch(ofMoreThan bytes: Int, in store: Store) -> Bool {
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
  func refusal(_ error: ModelError) -> Problem {
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
}

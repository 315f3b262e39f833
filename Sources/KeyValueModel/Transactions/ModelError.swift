/// The reason why the model refuses something. A refused transaction changes nothing.
public struct ModelError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error; its raw value is the code of the specification, section 6.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// No entity has this name.
    case unknownEntity = "unknown-entity"
    /// No rule allows the client to do this.
    case forbidden
    /// No object has this reference.
    case unknownObject = "unknown-object"
    /// The entity has no such key.
    case undefinedKey = "undefined-key"
    /// The key path does not follow the grammar.
    case malformedKeyPath = "malformed-key-path"
    /// A key path is set through an object that does not exist.
    case nullInKeyPath = "null-in-key-path"
    /// A delete rule, or a reference that must not be null, forbids the deletion.
    case deleteDenied = "delete-denied"
    /// An object with this reference exists already.
    case alreadyExists = "already-exists"
    /// The subject of a precondition has changed since its revision, or does not exist.
    case staleRevision = "stale-revision"
    /// The value does not have the type of the key or breaks a constraint.
    case invalidValue = "invalid-value"
    /// The key must have a value.
    case nullNotAllowed = "null-not-allowed"
    /// A computed key cannot be set.
    case readOnlyKey = "read-only-key"
    /// The reference names an object of another entity than the relationship wants.
    case wrongEntity = "wrong-entity"
    /// A `willChange` without its `didChange`, or the reverse.
    case unbalancedBracket = "unbalanced-bracket"
    /// An index set has an index that is out of range, or one twice.
    case indexOutOfRange = "index-out-of-range"
    /// Changes of the key path cannot be observed.
    case unobservableKeyPath = "unobservable-key-path"
    /// A test of a JSON Patch (RFC 6902) fails.
    case patchTestFailed = "patch-test-failed"
    /// The query is malformed or asks for something that does not exist.
    case malformedQuery = "malformed-query"
    /// The filter is not an expression over the keys of its entity, is not a condition, or costs too much.
    case malformedFilter = "malformed-filter"
    /// The operation needs a collection and the key is not one.
    case notACollection = "not-a-collection"
    /// An object, or all that the transaction writes, would have more bytes than allowed.
    case contentTooLarge = "content-too-large"
    /// The transaction, or the reading of a request, takes more steps than a request may.
    case tooManySteps = "too-many-steps"
    /// The objects take as much memory as they may, and the transaction would make them take more.
    case overloaded
    /// The number of objects with a lease has reached the limit of the store.
    case tooManyLeases = "too-many-leases"
    /// The number of objects with a lease that this client has made has reached the store's limit for one client.
    case tooManyLeasesOfClient = "too-many-leases-of-client"
  }

  /// The kind of error.
  public let code: Code
  /// A description of the error, as a sentence for the client.
  public let detail: String
  /// The object concerned, if there is one.
  public var object: String?
  /// The key path concerned, if there is one.
  public var keyPath: String?
  /// The index of the operation that failed in its transaction, from 0, if known.
  public var operation: Int?

  /// Creates an error with the object, key path and operation as far as they are known.
  public init(
    _ code: Code, _ detail: String, object: Reference? = nil, keyPath: String? = nil, operation: Int? = nil
  ) {
    self.code = code
    self.detail = detail
    self.object = object?.text
    self.keyPath = keyPath
    self.operation = operation
  }

  /// The code and the detail in one line.
  public var description: String { "\(code.rawValue): \(detail)" }

  /// Returns the same error with `reference` as its object, unless it has one.
  func at(_ reference: Reference) -> ModelError {
    var error = self
    error.object = error.object ?? reference.text
    return error
  }
}

/// Why the model refuses something. A refused transaction changes nothing.
public struct ModelError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The sort of mistake; its raw value is the code of the specification, section 6.
  public enum Code: String, Hashable, Sendable, CaseIterable {
    /// No entity has this name.
    case unknownEntity = "unknown-entity"
    /// No rule lets who asks do this.
    case forbidden
    /// No object has this reference.
    case unknownObject = "unknown-object"
    /// The entity has no such key.
    case undefinedKey = "undefined-key"
    /// The key path does not follow the grammar.
    case malformedKeyPath = "malformed-key-path"
    /// A key path is set through an object that is not there.
    case nullInKeyPath = "null-in-key-path"
    /// A delete rule, or a reference that must not be null, forbids the deletion.
    case deleteDenied = "delete-denied"
    /// An object with this reference is there already.
    case alreadyExists = "already-exists"
    /// What a precondition names has changed since its revision, or is not there.
    case staleRevision = "stale-revision"
    /// The value does not have the type of the key or breaks a constraint.
    case invalidValue = "invalid-value"
    /// The key must have a value.
    case nullNotAllowed = "null-not-allowed"
    /// A computed key cannot be set.
    case readOnlyKey = "read-only-key"
    /// The reference names an object of another entity than the relationship wants.
    case wrongEntity = "wrong-entity"
    /// A `willChange` without its `didChange`, or the other way round.
    case unbalancedBracket = "unbalanced-bracket"
    /// An index set names a place that is not there, or one twice.
    case indexOutOfRange = "index-out-of-range"
    /// Changes of the key path cannot be observed.
    case unobservableKeyPath = "unobservable-key-path"
    /// A JSON Patch (RFC 6902) tests for what is not so.
    case patchTestFailed = "patch-test-failed"
    /// The query asks for what there is not.
    case malformedQuery = "malformed-query"
    /// The filter is no expression over the keys of its entity, is no condition, or costs too much.
    case malformedFilter = "malformed-filter"
    /// The operation wants a collection and the key is none.
    case notACollection = "not-a-collection"
    /// An object, or what the transaction writes, would have more bytes than allowed.
    case contentTooLarge = "content-too-large"
    /// The transaction, or what is read, takes more steps than a request may.
    case tooManySteps = "too-many-steps"
    /// The objects take as much memory as they may, and the transaction would have them take more.
    case overloaded
    /// As many objects end by themselves as the store allows.
    case tooManyLeases = "too-many-leases"
    /// As many objects end by themselves, that this client has made so, as the store allows one client.
    case tooManyLeasesOfClient = "too-many-leases-of-client"
  }

  /// The sort of mistake.
  public let code: Code
  /// What is wrong, as a sentence for the person whose request it was.
  public let detail: String
  /// The object concerned, where there is one.
  public var object: String?
  /// The key path concerned, where there is one.
  public var keyPath: String?
  /// Which operation of a transaction failed, counted from 0.
  public var operation: Int?

  /// A mistake with what is known of its place.
  public init(
    _ code: Code, _ detail: String, object: Reference? = nil, keyPath: String? = nil, operation: Int? = nil
  ) {
    self.code = code
    self.detail = detail
    self.object = object?.text
    self.keyPath = keyPath
    self.operation = operation
  }

  /// Code and detail in a line.
  public var description: String { "\(code.rawValue): \(detail)" }

  /// The same mistake with the object that it is about.
  func at(_ reference: Reference) -> ModelError {
    var error = self
    error.object = error.object ?? reference.text
    return error
  }
}

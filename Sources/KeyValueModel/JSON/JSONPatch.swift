/// A JSON patch (RFC 6902): operations that change a document one after the other, either all or none of them.
public struct JSONPatch: Sendable {
  /// One operation, read and checked.
  enum Operation: Sendable {
    case add(JSONPointer, Value)
    case remove(JSONPointer)
    case replace(JSONPointer, Value)
    case move(from: JSONPointer, to: JSONPointer)
    case copy(from: JSONPointer, to: JSONPointer)
    case test(JSONPointer, Value)
  }

  let operations: [Operation]

  /// Creates a patch of operations that were read before.
  init(operations: [Operation]) { self.operations = operations }

  /// Creates a patch from an array of objects with the members that the operation in `op` requires. Other members are
  /// ignored, as RFC 6902 §4 demands. O(n) in the length of the paths.
  ///
  /// Throws `malformed` with the index of the first invalid operation, or `tooManyOperations`.
  public init(_ value: Value, operationLimit: Int = 1000) throws(JSONPatchError) {
    guard let elements = value.elements else {
      throw JSONPatchError(kind: .malformed, operationIndex: nil, message: "a patch must be an array of operations")
    }
    guard elements.count <= operationLimit else {
      let message = "a patch may have \(operationLimit) operations, not \(elements.count)"
      throw JSONPatchError(kind: .tooManyOperations, operationIndex: nil, message: message)
    }
    var operations: [Operation] = []
    operations.reserveCapacity(elements.count)
    for (index, element) in elements.enumerated() {
      operations.append(try JSONPatchReader(element, index: index).operation())
    }
    self.operations = operations
  }

  /// Returns the document that the operations make of `document`. Removing the whole document leaves null.
  ///
  /// `nodeLimit` bounds the number of values, at any depth, of the document and of everything that operations add and
  /// copy to it together, whether it is removed later or not. This bounds the work as well as the result. `depthLimit`
  /// bounds the nesting of added values. Without the two limits, each `copy` could double the document.
  ///
  /// Throws the failure of the first operation that cannot be applied.
  public func applied(
    to document: Value, nodeLimit: Int = 1_000_000, depthLimit: Int = 64
  ) throws(JSONPatchError) -> Value {
    var limits = JSONPatchLimits()
    (limits.nodes, limits.depth) = (nodeLimit, depthLimit)
    var application = JSONPatchApplication(document, limits: limits)
    for operation in operations { try application.apply(operation) }
    return application.document
  }

  /// The names of the document's members that the operations change, in the order of the first changes: members that
  /// they write into, and members from which a `move` takes a value, but not members that `test` and `copy` only read.
  /// An operation that changes the whole document names none: see `touchesDocument`.
  public var touchedMembers: [String] {
    var names = JSONMembers()
    for pointer in operations.flatMap(\.changedLocations) {
      if let name = pointer.tokens.first { names[name] = .null }
    }
    return Array(names.keys)
  }

  /// The names of the document's members that the operations change or read; nil if an operation reads or changes the
  /// document as a whole.
  var namedMembers: Set<String>? {
    var names: Set<String> = []
    for operation in operations {
      let form = operation.form
      for pointer in [form.source, form.path].compactMap(\.self) {
        guard let name = pointer.tokens.first else { return nil }
        names.insert(name)
      }
    }
    return names
  }

  /// True if an operation replaces or removes the document as a whole.
  public var touchesDocument: Bool {
    operations.contains { $0.changedLocations.contains { $0.tokens.isEmpty } }
  }
}

extension JSONPatch.Operation {
  /// The operations by name (RFC 6902 §4).
  enum Kind: String {
    case add, remove, replace, move, copy, test

    /// True if the operation has a `from`.
    var hasSource: Bool { self == .move || self == .copy }
    /// True if the operation has a `value`.
    var hasValue: Bool { self == .add || self == .replace || self == .test }
  }

  /// The members of the operation as it is written.
  var form: (kind: Kind, source: JSONPointer?, path: JSONPointer, value: Value?) {
    switch self {
    case .add(let path, let value): (.add, nil, path, value)
    case .remove(let path): (.remove, nil, path, nil)
    case .replace(let path, let value): (.replace, nil, path, value)
    case .move(let source, let path): (.move, source, path, nil)
    case .copy(let source, let path): (.copy, source, path, nil)
    case .test(let path, let value): (.test, nil, path, value)
    }
  }

  /// Creates the operation of a kind, with the source and the value that it needs. Nil if they do not fit the kind, or
  /// if a value would be moved into itself.
  init?(_ kind: Kind, from source: JSONPointer?, _ path: JSONPointer, _ value: Value?) {
    switch (kind, source, value) {
    case (.add, nil, let value?): self = .add(path, value)
    case (.remove, nil, nil): self = .remove(path)
    case (.replace, nil, let value?): self = .replace(path, value)
    case (.move, let source?, nil) where !source.isProperPrefix(of: path): self = .move(from: source, to: path)
    case (.copy, let source?, nil): self = .copy(from: source, to: path)
    case (.test, nil, let value?): self = .test(path, value)
    default: return nil
    }
  }

  /// The locations that the operation changes, the source of a move first.
  fileprivate var changedLocations: [JSONPointer] {
    switch self {
    case .add(let path, _), .remove(let path), .replace(let path, _), .copy(_, let path): [path]
    case .move(let source, let path): [source, path]
    case .test: []
    }
  }
}

/// A reader of one operation of a JSON patch.
private struct JSONPatchReader {
  private let object: JSONObject
  private let index: Int

  /// Creates a reader of the operation at `index`. Throws `malformed` if it is not an object.
  init(_ value: Value, index: Int) throws(JSONPatchError) {
    guard case .object(let object) = value else {
      throw JSONPatchError(kind: .malformed, operationIndex: index, message: "an operation must be an object")
    }
    self.object = object
    self.index = index
  }

  /// Reads the operation. Throws `malformed`.
  func operation() throws(JSONPatchError) -> JSONPatch.Operation {
    let name = try string("op")
    guard let kind = JSONPatch.Operation.Kind(rawValue: name) else { throw error("'\(name)' is not an operation") }
    let source = kind.hasSource ? try pointer("from") : nil
    let path = try pointer("path")
    guard let operation = JSONPatch.Operation(kind, from: source, path, kind.hasValue ? try value() : nil) else {
      throw error("a value cannot be moved into itself")
    }
    return operation
  }

  private func error(_ message: String) -> JSONPatchError {
    JSONPatchError(kind: .malformed, operationIndex: index, message: message)
  }

  private func string(_ name: String) throws(JSONPatchError) -> String {
    switch object[name] {
    case .string(let text): return text
    case .reference(let reference): return reference.text
    case nil: throw error("'\(name)' is missing")
    default: throw error("'\(name)' must be a string")
    }
  }

  private func pointer(_ name: String) throws(JSONPatchError) -> JSONPointer {
    let text = try string(name)
    guard let pointer = JSONPointer(text) else { throw error("'\(name)' is not a JSON pointer: '\(text)'") }
    return pointer
  }

  private func value() throws(JSONPatchError) -> Value {
    guard let value = object["value"] else { throw error("'value' is missing") }
    return value
  }
}

/// The error for a JSON patch that cannot be read or applied.
public struct JSONPatchError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The ways in which a patch fails.
  public enum Kind: String, Hashable, Sendable {
    /// The patch does not have the form that RFC 6902 describes.
    case malformed
    /// It has more operations than allowed.
    case tooManyOperations = "too-many-operations"
    /// A location that must exist does not.
    case missingLocation = "missing-location"
    /// A token that should be an index of an array is not one.
    case invalidIndex = "invalid-index"
    /// A `test` found another value.
    case testFailed = "test-failed"
    /// The document would become larger or nest deeper than allowed.
    case tooLarge = "too-large"
    /// The document, or all that is added to it, would have more bytes than allowed.
    case tooManyBytes = "too-many-bytes"
    /// Applying it takes more work than allowed.
    case tooManySteps = "too-many-steps"
  }

  /// The way in which the patch fails.
  public let kind: Kind
  /// The index of the operation in the patch, from 0; nil if the patch as a whole is wrong.
  public let operationIndex: Int?
  /// The mistake, as a clause.
  public let message: String

  /// Creates the error for an operation, or for the patch.
  public init(kind: Kind, operationIndex: Int?, message: String) {
    self.kind = kind
    self.operationIndex = operationIndex
    self.message = message
  }

  /// The message with its place.
  public var description: String {
    operationIndex.map { "operation \($0): \(message)" } ?? message
  }
}

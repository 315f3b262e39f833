/// Why a JSON patch cannot be read or applied.
public struct JSONPatchError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The ways in which a patch fails.
  public enum Kind: String, Hashable, Sendable {
    /// The patch is not what RFC 6902 describes.
    case malformed
    /// It has more operations than allowed.
    case tooManyOperations = "too-many-operations"
    /// A location that must be there is not.
    case missingLocation = "missing-location"
    /// What should be an index of an array is none.
    case invalidIndex = "invalid-index"
    /// A `test` found another value.
    case testFailed = "test-failed"
    /// The document would become larger or nest deeper than allowed.
    case tooLarge = "too-large"
    /// The document, or all that is added to it, would have more bytes than allowed.
    case tooManyBytes = "too-many-bytes"
    /// Applying it is more work than allowed.
    case tooManySteps = "too-many-steps"
  }

  /// In which way the patch fails.
  public let kind: Kind
  /// The place of the operation in the patch, from 0; nil where the patch as a whole is wrong.
  public let operationIndex: Int?
  /// What is wrong, as a clause.
  public let message: String

  /// A failure of an operation, or of the patch.
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

/// Why a text is not JSON that the model can hold.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as a clause: `a member name must be a string`.
  public let reason: String
  /// How many bytes of the text stand before the mistake.
  public let offset: Int
  /// Whether what stands there is JSON, a number beyond the range of a double, which no value can hold.
  public let isOutOfRange: Bool

  /// A mistake at a place.
  public init(reason: String, offset: Int, isOutOfRange: Bool = false) {
    self.reason = reason
    self.offset = offset
    self.isOutOfRange = isOutOfRange
  }

  /// The reason with its place.
  public var description: String { "\(reason) (byte \(offset))" }
}

/// Why a text is not JSON that the model can hold.
public struct JSONError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, as a clause: `a member name must be a string`.
  public let reason: String
  /// How many bytes of the text stand before the mistake.
  public let offset: Int

  /// A mistake at a place.
  public init(reason: String, offset: Int) {
    self.reason = reason
    self.offset = offset
  }

  /// The reason with its place.
  public var description: String { "\(reason) (byte \(offset))" }
}

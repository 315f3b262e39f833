/// A key of a map: a bool, an integer of either kind, or a string. Equal numbers are equal keys whatever their types
/// (CEL language definition, Numeric Values).
package struct ExpressionMapKey: Sendable, Hashable {
  private enum Content: Sendable, Hashable {
    case bool(Bool)
    case number(Int128)
    case string(ExactText)
  }

  private let content: Content

  /// The key that `value` is, or nil when such a value cannot be a key. A double is the integer that it equals.
  package init?(_ value: ExpressionValue) {
    switch value {
    case .bool(let flag): content = .bool(flag)
    case .int(let number): content = .number(Int128(number))
    case .uint(let number): content = .number(Int128(number))
    case .string(let text): content = .string(ExactText(text))
    case .double(let number):
      guard let exact = Int128(exactly: number) else { return nil }
      content = .number(exact)
    default: return nil
    }
  }

  /// The key that a text is.
  package init(_ text: String) { content = .string(ExactText(text)) }
}

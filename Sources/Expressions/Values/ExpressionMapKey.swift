/// A key of a map: a bool, an integer of either kind, or a string. Equal numbers are equal keys whatever their types
/// (CEL language definition, Numeric Values).
package struct ExpressionMapKey: Sendable, Hashable {
  private enum Content: Sendable {
    case bool(Bool)
    case number(Int128)
    case string(String)
  }

  private let content: Content

  /// The key that `value` is, or nil when such a value cannot be a key. A double is the integer that it equals.
  package init?(_ value: ExpressionValue) {
    switch value {
    case .bool(let flag): content = .bool(flag)
    case .int(let number): content = .number(Int128(number))
    case .uint(let number): content = .number(Int128(number))
    case .string(let text): content = .string(text)
    case .double(let number):
      guard let exact = Int128(exactly: number) else { return nil }
      content = .number(exact)
    default: return nil
    }
  }

  /// The key that a text is.
  package init(_ text: String) { content = .string(text) }

  /// Whether both are the same text by scalars, bool, or number.
  package static func == (left: ExpressionMapKey, right: ExpressionMapKey) -> Bool {
    switch (left.content, right.content) {
    case (.bool(let left), .bool(let right)): left == right
    case (.number(let left), .number(let right)): left == right
    case (.string(let left), .string(let right)): left.hasSameScalars(as: right)
    default: false
    }
  }

  /// Adds the key, a text by its bytes.
  package func hash(into hasher: inout Hasher) {
    switch content {
    case .bool(let flag): hasher.combine(flag)
    case .number(let number): hasher.combine(number)
    case .string(let text):
      var text = text
      text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
  }
}

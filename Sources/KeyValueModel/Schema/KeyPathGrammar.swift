/// The syntax of key paths: `key ('.' key)*`, with at most one collection operator, which is followed by a key path
/// unless it is `@count` (KVC guide, "Using Collection Operators").
enum KeyPathGrammar {
  /// A key, or an operator with its `@`.
  struct Component {
    let name: String
    /// The operator, where it is one.
    let function: CollectionOperator?
  }

  /// The parts of `text`, or `malformed-key-path`.
  static func components(of text: String) throws(ModelError) -> [Component] {
    func malformed(_ detail: String) -> ModelError { ModelError(.malformedKeyPath, detail, keyPath: text) }

    guard !text.isEmpty else { throw malformed("a key path has at least one key") }
    let names = text.split(separator: ".", omittingEmptySubsequences: false)
    guard names.count <= ModelKeyPath.maximumLength else {
      throw malformed("a key path has at most \(ModelKeyPath.maximumLength) keys")
    }
    var components: [Component] = []
    for name in names {
      if name.hasPrefix("@") {
        guard let function = CollectionOperator(rawValue: String(name)) else {
          throw malformed("'\(name)' is no collection operator")
        }
        guard components.allSatisfy({ $0.function == nil }) else { throw malformed("'\(text)' has two operators") }
        components.append(Component(name: String(name), function: function))
      } else {
        guard isKey(name) else { throw malformed("'\(name)' in '\(text)' is no key") }
        components.append(Component(name: String(name), function: nil))
      }
    }
    try checkOperator(components, malformed)
    return components
  }

  private static func checkOperator(
    _ components: [Component], _ malformed: (String) -> ModelError
  ) throws(ModelError) {
    guard let position = components.firstIndex(where: { $0.function != nil }) else { return }
    let name = components[position].name
    guard position > 0 else { throw malformed("'\(name)' has no collection before it") }
    let isLast = position == components.count - 1
    if name == "@count", !isLast { throw malformed("'@count' takes nothing behind it") }
    if name != "@count", isLast { throw malformed("'\(name)' wants a key path behind it") }
  }

  /// Whether `name` is `[A-Za-z_][A-Za-z0-9_]*`.
  static func isKey(_ name: some StringProtocol) -> Bool {
    guard let first = name.utf8.first, first.isASCIILetter || first == UInt8(ascii: "_") else { return false }
    return name.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "_") }
  }
}

import Yams

/// Reads the definition of one key: which words it has, and whether they go together.
struct KeyReader {
  let name: Located<String>
  let words: Node.Mapping

  private static let constraints: Set<String> = [
    "minimum", "maximum", "minLength", "maxLength", "pattern", "enum",
  ]
  private static let attributeWords = constraints.union(["type", "notifies", "optional", "default", "indexed"])
  private static let toOneWords: Set<String> = ["toOne", "inverse", "delete", "optional", "indexed", "notifies"]
  private static let toManyWords: Set<String> = ["toMany", "ordered", "inverse", "delete", "notifies"]
  private static let computedWords: Set<String> = ["computed", "type", "notifies"]

  /// The declaration, or nil where it has mistakes, which go to `reader`.
  func read(reportingTo reader: inout SchemaReader) -> KeyDeclaration? {
    let sorts = ["toOne", "toMany", "computed"].filter { words[$0] != nil }
    guard sorts.count < 2 else {
      reader.report(name.mark, "'\(name.content)' is either \(sorts.joined(separator: " or "))")
      return nil
    }
    guard !sorts.isEmpty || words["type"] != nil else {
      reader.report(name.mark, "'\(name.content)' wants a type, a toOne, a toMany or a computed")
      return nil
    }
    let notifying: Key.Notifying = words["notifies"].flatMap { reader.word($0, "'notifies'") } ?? .always
    if let text = words["computed"] { return readComputed(text, notifying, &reader) }
    if let destination = words["toMany"] { return readToMany(destination, notifying, &reader) }
    let isOptional = words["optional"].flatMap { reader.boolean($0, "'optional'") } ?? true
    if let destination = words["toOne"] { return readToOne(destination, isOptional, notifying, &reader) }
    return readAttribute(isOptional, notifying, &reader)
  }

  private func checkWords(_ allowed: Set<String>, _ reader: inout SchemaReader) {
    for (word, _) in words where !allowed.contains(word.string ?? "") {
      let list = allowed.sorted().joined(separator: ", ")
      reader.report(word, "'\(word.string ?? "?")' does not go with '\(name.content)'; it may have \(list)")
    }
  }

  private func readComputed(
    _ node: Node, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    checkWords(Self.computedWords, &reader)
    guard let text = reader.text(node, "'computed'") else { return nil }
    let type: AttributeType? = words["type"].flatMap { reader.word($0, "'type'") }
    return KeyDeclaration(
      name: name, kind: .computed(text, type: type), isOptional: true, notifying: notifying, isIndexed: false)
  }

  private func readToOne(
    _ node: Node, _ isOptional: Bool, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    checkWords(Self.toOneWords, &reader)
    guard let destination = reader.string(node, "'toOne'") else { return nil }
    return KeyDeclaration(
      name: name, kind: .toOne(destination: destination, inverse: readInverse(&reader), deleteRule: readRule(&reader)),
      isOptional: isOptional, notifying: notifying, isIndexed: readIndexed(&reader))
  }

  /// A collection of objects or, where the word behind `toMany` is an attribute type, of values.
  private func readToMany(
    _ node: Node, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    guard let member = reader.string(node, "'toMany'") else { return nil }
    let isOrdered = words["ordered"].flatMap { reader.boolean($0, "'ordered'") } ?? false
    let content: KeyDeclaration.Member
    if let type = AttributeType(rawValue: member.content) {
      checkWords(Self.constraints.union(["toMany", "ordered", "notifies"]), &reader)
      content = .values(AttributeReader(type: type, words: words).read(reportingTo: &reader))
    } else {
      checkWords(Self.toManyWords, &reader)
      content = .objects(member, inverse: readInverse(&reader), deleteRule: readRule(&reader))
    }
    return KeyDeclaration(
      name: name, kind: .toMany(content, isOrdered: isOrdered), isOptional: false, notifying: notifying,
      isIndexed: false)
  }

  private func readAttribute(
    _ isOptional: Bool, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    checkWords(Self.attributeWords, &reader)
    guard let node = words["type"], let type: AttributeType = reader.word(node, "'type'") else { return nil }
    let attribute = AttributeReader(type: type, words: words).read(reportingTo: &reader)
    return KeyDeclaration(
      name: name, kind: .attribute(attribute), isOptional: isOptional, notifying: notifying,
      isIndexed: readIndexed(&reader))
  }

  private func readInverse(_ reader: inout SchemaReader) -> Located<String>? {
    words["inverse"].flatMap { reader.string($0, "'inverse'") }
  }

  private func readRule(_ reader: inout SchemaReader) -> DeleteRule {
    words["delete"].flatMap { reader.word($0, "'delete'") } ?? .nullify
  }

  private func readIndexed(_ reader: inout SchemaReader) -> Bool {
    words["indexed"].flatMap { reader.boolean($0, "'indexed'") } ?? false
  }
}

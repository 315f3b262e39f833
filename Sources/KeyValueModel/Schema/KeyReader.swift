internal import Yams

/// Reads the definition of one key: which words it has, and whether they go together.
struct KeyReader {
  let name: Located<String>
  let words: Node.Mapping

  private static let common: Set<String> = ["notifies", "type"]
  private static let attributeWords: Set<String> = [
    "optional", "default", "minimum", "maximum", "minLength", "maxLength", "pattern", "enum",
  ]
  private static let toOneWords: Set<String> = ["toOne", "inverse", "delete", "optional"]
  /// Words of the contract that this version does not know yet.
  private static let laterWords: Set<String> = ["toMany", "ordered", "indexed"]

  /// The declaration, or nil where it has mistakes, which go to `reader`.
  func read(reportingTo reader: inout SchemaReader) -> KeyDeclaration? {
    for (word, _) in words where Self.laterWords.contains(word.string ?? "") {
      reader.report(word, "'\(word.string ?? "")' is not supported by this version of Keyway")
      return nil
    }
    let sorts = ["toOne", "computed"].filter { words[$0] != nil }
    guard sorts.count < 2 else {
      reader.report(name.mark, "'\(name.content)' is either toOne or computed")
      return nil
    }
    guard words["toOne"] != nil || words["computed"] != nil || words["type"] != nil else {
      reader.report(name.mark, "'\(name.content)' wants a type, a toOne or a computed")
      return nil
    }
    let notifying: Key.Notifying = words["notifies"].flatMap { reader.word($0, "'notifies'") } ?? .always
    if let path = words["computed"] { return readComputed(path, notifying, &reader) }
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
    checkWords(Self.common.union(["computed"]), &reader)
    guard let path = reader.string(node, "'computed'") else { return nil }
    let type: AttributeType? = words["type"].flatMap { reader.word($0, "'type'") }
    guard (try? KeyPathGrammar.components(of: path.content)) != nil else {
      reader.report(path.mark, "'computed' wants a key path; this version of Keyway has no expressions")
      return nil
    }
    return KeyDeclaration(
      name: name, kind: .computed(path: path, type: type), isOptional: true, notifying: notifying)
  }

  private func readToOne(
    _ node: Node, _ isOptional: Bool, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    checkWords(Self.toOneWords.union(["notifies"]), &reader)
    guard let destination = reader.string(node, "'toOne'") else { return nil }
    let inverse = words["inverse"].flatMap { reader.string($0, "'inverse'") }
    let rule: ToOne.DeleteRule = words["delete"].flatMap { reader.word($0, "'delete'") } ?? .nullify
    return KeyDeclaration(
      name: name, kind: .toOne(destination: destination, inverse: inverse, deleteRule: rule),
      isOptional: isOptional, notifying: notifying)
  }

  private func readAttribute(
    _ isOptional: Bool, _ notifying: Key.Notifying, _ reader: inout SchemaReader
  ) -> KeyDeclaration? {
    checkWords(Self.common.union(Self.attributeWords), &reader)
    guard let node = words["type"], let type: AttributeType = reader.word(node, "'type'") else { return nil }
    let attribute = AttributeReader(type: type, words: words).read(reportingTo: &reader)
    return KeyDeclaration(name: name, kind: .attribute(attribute), isOptional: isOptional, notifying: notifying)
  }
}

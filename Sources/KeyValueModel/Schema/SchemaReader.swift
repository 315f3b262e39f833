import Support
import Yams

/// Reads a schema file into declarations: the YAML, the words, the types of what stands behind them. Goes on after a
/// mistake, to find them all.
struct SchemaReader {
  private(set) var problems: [SchemaError.Problem] = []
  /// The rules for entities that say nothing themselves.
  private(set) var access = AccessDeclaration()

  /// The declarations of `yaml`; what is wrong is added to `problems`.
  mutating func read(_ yaml: String) -> [EntityDeclaration] {
    let root: Node?
    do throws(YAMLMistake) {
      root = try YAMLDocument.root(of: yaml)
    } catch {
      problems.append(.init(line: error.line, column: error.column, message: error.message))
      return []
    }
    guard let root, let top = mapping(root, "a schema file") else {
      if root == nil { problems.append(.init(line: 1, column: 1, message: "the file is empty; it wants 'entities:'")) }
      return []
    }
    var declarations: [EntityDeclaration] = []
    for (key, value) in top {
      if key.string == "access" {
        access = readAccess(value, ofEntity: false)
        continue
      }
      guard key.string == "entities" else {
        report(key, "'\(key.string ?? "?")' is not a word of a schema file; it has 'access' and 'entities'")
        continue
      }
      guard let entities = mapping(value, "'entities'") else { continue }
      for (name, body) in entities { readEntity(name, body).map { declarations.append($0) } }
    }
    if top["entities"] == nil { report(root, "a schema file wants 'entities:'") }
    return declarations
  }

  private mutating func readEntity(_ name: Node, _ body: Node) -> EntityDeclaration? {
    guard let text = name.string, Reference(entity: text, id: "1") != nil else {
      report(name, "an entity's name is a letter followed by letters, digits and '_'")
      return nil
    }
    guard let words = mapping(body, "the entity '\(text)'") else { return nil }
    var entity = EntityDeclaration(name: Located(content: text, mark: mark(name)))
    for (word, value) in words {
      switch word.string {
      case "extends": entity.parent = string(value, "'extends'")
      case "display": entity.display = strings(value, "'display'")
      case "keys":
        guard let keys = mapping(value, "'keys'") else { continue }
        for (key, definition) in keys { readKey(key, definition).map { entity.keys.append($0) } }
      case "access": entity.access = readAccess(value, ofEntity: true)
      default:
        report(word, "'\(word.string ?? "?")' is not a word of an entity; it has extends, keys, display and access")
      }
    }
    return entity
  }

  private mutating func readKey(_ name: Node, _ definition: Node) -> KeyDeclaration? {
    guard let text = name.string, KeyPathGrammar.isKey(text) else {
      report(name, "a key's name is a letter or '_' followed by letters, digits and '_'")
      return nil
    }
    guard !AccessRule.reservedNames.contains(text) else {
      report(name, "no key is called '\(text)': rules have that name for something else")
      return nil
    }
    guard let words = mapping(definition, "the key '\(text)'") else { return nil }
    return KeyReader(name: Located(content: text, mark: mark(name)), words: words).read(reportingTo: &self)
  }
}

// MARK: - Nodes

extension SchemaReader {
  /// Where a node begins; nodes that were read from text always know.
  func mark(_ node: Node) -> Place { Place(line: node.mark?.line ?? 1, column: node.mark?.column ?? 1) }

  mutating func report(_ node: Node, _ message: String) {
    report(mark(node), message)
  }

  mutating func report(_ mark: Place, _ message: String) {
    problems.append(.init(line: mark.line, column: mark.column, message: message))
  }

  mutating func mapping(_ node: Node, _ what: String) -> Node.Mapping? {
    guard case .mapping(let mapping) = node else {
      report(node, "\(what) wants names with values")
      return nil
    }
    return mapping
  }

  mutating func string(_ node: Node, _ what: String) -> Located<String>? {
    guard case .scalar(let scalar) = node else {
      report(node, "\(what) wants a text")
      return nil
    }
    return Located(content: scalar.string, mark: mark(node))
  }

  /// A text that is read further, with where it begins: behind the quotation mark where it has one.
  mutating func text(_ node: Node, _ what: String) -> LocatedText? {
    guard case .scalar(let scalar) = node else {
      report(node, "\(what) wants a text")
      return nil
    }
    let place = mark(node)
    let isQuoted = scalar.style == .doubleQuoted || scalar.style == .singleQuoted
    let isBlock = scalar.style == .literal || scalar.style == .folded
    // Escapes, doubled quotes and folded lines shift what stands behind them.
    let isVerbatim = !isBlock && !scalar.string.contains { "\n\"'\\\t".contains($0) }
    return LocatedText(
      content: scalar.string, mark: Place(line: place.line, column: place.column + (isQuoted ? 1 : 0)),
      isVerbatim: isVerbatim || (!isQuoted && !isBlock && !scalar.string.contains("\n")))
  }

  mutating func strings(_ node: Node, _ what: String) -> [Located<String>]? {
    guard case .sequence(let sequence) = node else {
      report(node, "\(what) wants a list")
      return nil
    }
    return sequence.compactMap { string($0, what) }
  }

  mutating func boolean(_ node: Node, _ what: String) -> Bool? {
    guard let value = node.bool else {
      report(node, "\(what) is true or false")
      return nil
    }
    return value
  }

  mutating func length(_ node: Node, _ what: String) -> Int? {
    guard case .scalar(let scalar) = node, case .integer(let number) = YAMLScalar(scalar),
      let value = Int(exactly: number), value >= 0
    else {
      report(node, "\(what) wants a whole number from 0")
      return nil
    }
    return value
  }

  /// One of an enumeration's words.
  /// What other languages call the types of attributes.
  private static let otherNames = [
    "bool": "boolean", "int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "double": "number",
    "float": "number", "decimal": "number", "text": "string", "str": "string", "datetime": "date", "timestamp": "date",
    "time": "date", "object": "json", "any": "json", "map": "json",
  ]

  mutating func word<Word: RawRepresentable<String> & CaseIterable>(_ node: Node, _ what: String) -> Word? {
    if let text = node.string, let word = Word(rawValue: text) { return word }
    let words = Word.allCases.map(\.rawValue)
    let hint = node.string.map { text in
      Self.otherNames[text.lowercased()].flatMap { words.contains($0) ? "; did you mean '\($0)'?" : nil }
        ?? NearestName.hint(for: text, among: words)
    }
    report(node, "\(what) is one of \(words.joined(separator: ", "))\(hint ?? "")")
    return nil
  }
}

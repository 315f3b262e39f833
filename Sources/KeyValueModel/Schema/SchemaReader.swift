import CEL
import Support
import Yams

/// Reads a schema file into declarations: the YAML, its words, and the types of their values. Continues after a
/// mistake, to find all mistakes.
struct SchemaReader {
  private(set) var problems: [SchemaError.Problem] = []
  /// The rules for entities that have no rules of their own.
  private(set) var access = AccessDeclaration()

  /// Returns the declarations of `yaml`, and adds mistakes to `problems`.
  mutating func read(_ yaml: String) -> [EntityDeclaration] {
    let root: Node?
    do throws(YAMLMistake) {
      root = try YAMLDocument.root(of: yaml)
    } catch {
      problems.append(.init(line: error.line, column: error.column, message: error.message))
      return []
    }
    guard let root, let top = mapping(root, "a schema file") else {
      if root == nil { problems.append(.init(line: 1, column: 1, message: "the file is empty; it needs 'entities:'")) }
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
    if top["entities"] == nil { report(root, "a schema file needs 'entities:'") }
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
      report(name, "a key cannot be called '\(text)': rules use this name for something else")
      return nil
    }
    guard let words = mapping(definition, "the key '\(text)'") else { return nil }
    return KeyReader(name: Located(content: text, mark: mark(name)), words: words).read(reportingTo: &self)
  }
}

extension SchemaReader {
  /// Reads `access:` of an entity, or of the file, which has no rules of keys.
  private mutating func readAccess(_ node: Node, ofEntity: Bool) -> AccessDeclaration {
    var access = AccessDeclaration()
    guard let words = mapping(node, "'access'") else { return access }
    let actions = AccessRules.Action.allCases.map(\.rawValue)
    for (word, value) in words {
      if let action = word.string.flatMap(AccessRules.Action.init) {
        access.actions[action] = text(value, "'\(action.rawValue)'")
      } else if ofEntity, word.string == "keys" {
        guard let keys = mapping(value, "'keys'") else { continue }
        for (name, rules) in keys { readKeyRules(name, rules).map { access.keys.append($0) } }
      } else {
        let list = (actions + (ofEntity ? ["keys"] : [])).joined(separator: ", ")
        report(word, "'\(word.string ?? "?")' is not a word of access; it has \(list)")
      }
    }
    return access
  }

  private mutating func readKeyRules(_ name: Node, _ node: Node) -> AccessDeclaration.KeyRules? {
    guard let text = string(name, "the name of a key"), let words = mapping(node, "the access of '\(text.content)'")
    else { return nil }
    var rules = AccessDeclaration.KeyRules(name: text)
    for (word, value) in words {
      switch word.string {
      case "read": rules.read = self.text(value, "'read'")
      case "update": rules.update = self.text(value, "'update'")
      case "inverse": rules.inverse = self.text(value, "'inverse'")
      default:
        report(word, "'\(word.string ?? "?")' is not a word of a key's access; it has read, update and inverse")
      }
    }
    return rules
  }
}

// MARK: - Nodes

extension SchemaReader {
  /// The place at which a node begins. Nodes read from text always have one.
  private func mark(_ node: Node) -> Place { Place(line: node.mark?.line ?? 1, column: node.mark?.column ?? 1) }

  fileprivate mutating func report(_ node: Node, _ message: String) {
    report(mark(node), message)
  }

  fileprivate mutating func report(_ mark: Place, _ message: String) {
    problems.append(.init(line: mark.line, column: mark.column, message: message))
  }

  private mutating func mapping(_ node: Node, _ what: String) -> Node.Mapping? {
    guard case .mapping(let mapping) = node else {
      report(node, "\(what) must be a mapping of names to values")
      return nil
    }
    return mapping
  }

  fileprivate mutating func string(_ node: Node, _ what: String) -> Located<String>? {
    guard case .scalar(let scalar) = node else {
      report(node, "\(what) must be a text")
      return nil
    }
    return Located(content: scalar.string, mark: mark(node))
  }

  /// Returns a text that is parsed further, with its place: after the opening quotation mark if it has one.
  fileprivate mutating func text(_ node: Node, _ what: String) -> LocatedText? {
    guard case .scalar(let scalar) = node else {
      report(node, "\(what) must be a text")
      return nil
    }
    let place = mark(node)
    let isQuoted = scalar.style == .doubleQuoted || scalar.style == .singleQuoted
    let isBlock = scalar.style == .literal || scalar.style == .folded
    // Escapes, doubled quotes and folded lines shift the columns after them.
    let isVerbatim = !isBlock && !scalar.string.contains { "\n\"'\\\t".contains($0) }
    return LocatedText(
      content: scalar.string, mark: Place(line: place.line, column: place.column + (isQuoted ? 1 : 0)),
      isVerbatim: isVerbatim || (!isQuoted && !isBlock && !scalar.string.contains("\n")))
  }

  private mutating func strings(_ node: Node, _ what: String) -> [Located<String>]? {
    guard case .sequence(let sequence) = node else {
      report(node, "\(what) must be a list")
      return nil
    }
    return sequence.compactMap { string($0, what) }
  }

  fileprivate mutating func boolean(_ node: Node, _ what: String) -> Bool? {
    guard case .scalar(let scalar) = node, case .bool(let value) = YAMLScalar(scalar) else {
      report(node, "\(what) must be true or false")
      return nil
    }
    return value
  }

  fileprivate mutating func length(_ node: Node, _ what: String) -> Int? {
    guard case .scalar(let scalar) = node, case .integer(let number) = YAMLScalar(scalar),
      let value = Int(exactly: number), value >= 0
    else {
      report(node, "\(what) must be a whole number of at least 0")
      return nil
    }
    return value
  }

  /// The names of attribute types in other languages, for hints.
  private static let otherNames = [
    "bool": "boolean", "int": "integer", "int32": "integer", "int64": "integer", "long": "integer", "double": "number",
    "float": "number", "decimal": "number", "text": "string", "str": "string", "datetime": "date", "timestamp": "date",
    "time": "date", "object": "json", "any": "json", "map": "json",
  ]

  /// Returns a word of an enumeration.
  fileprivate mutating func word<Word: RawRepresentable<String> & CaseIterable>(_ node: Node, _ what: String) -> Word? {
    if let text = node.string, let word = Word(rawValue: text) { return word }
    let words = Word.allCases.map(\.rawValue)
    let hint = node.string.map { text in
      Self.otherNames[text.lowercased()].flatMap { words.contains($0) ? "; did you mean '\($0)'?" : nil }
        ?? NearestName.hint(for: text, among: words)
    }
    report(node, "\(what) must be one of \(words.joined(separator: ", "))\(hint ?? "")")
    return nil
  }
}

/// Reads the definition of one key, and checks that its words go together.
private struct KeyReader {
  let name: Located<String>
  let words: Node.Mapping

  private static let constraints: Set<String> = [
    "minimum", "maximum", "minLength", "maxLength", "pattern", "enum",
  ]
  private static let attributeWords = constraints.union(["type", "notifies", "optional", "default", "indexed"])
  private static let toOneWords: Set<String> = ["toOne", "inverse", "delete", "optional", "indexed", "notifies"]
  private static let toManyWords: Set<String> = ["toMany", "ordered", "inverse", "delete", "notifies"]
  private static let computedWords: Set<String> = ["computed", "type", "notifies"]

  /// Returns the declaration. Returns nil and reports to `reader` if it is invalid.
  func read(reportingTo reader: inout SchemaReader) -> KeyDeclaration? {
    let sorts = ["toOne", "toMany", "computed"].filter { words[$0] != nil }
    guard sorts.count < 2 else {
      reader.report(name.mark, "'\(name.content)' must be either \(sorts.joined(separator: " or "))")
      return nil
    }
    guard !sorts.isEmpty || words["type"] != nil else {
      reader.report(name.mark, "'\(name.content)' needs a type, a toOne, a toMany or a computed")
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
      reader.report(word, "'\(word.string ?? "?")' is not allowed for '\(name.content)'; it may have \(list)")
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

  /// Reads a collection: of values if the word after `toMany` is an attribute type, otherwise of objects.
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

/// Reads the constraints and the default of one attribute.
private struct AttributeReader {
  let type: AttributeType
  let words: Node.Mapping

  /// Returns the attribute, and reports its mistakes to `reader`.
  func read(reportingTo reader: inout SchemaReader) -> Attribute {
    var attribute = Attribute(type: type)
    readRange(into: &attribute, &reader)
    readText(into: &attribute, &reader)
    if let node = words["enum"] { attribute.allowedValues = readEnum(node, attribute, &reader) }
    // A collection has no default; `checkWords` reports one.
    if words["toMany"] == nil, let node = words["default"], let value = value(node, &reader) {
      do throws(Attribute.Refusal) {
        attribute.defaultValue = try attribute.accepting(value)
      } catch {
        reader.report(node, "the default \(error.reason)")
      }
    }
    return attribute
  }

  private func readRange(into attribute: inout Attribute, _ reader: inout SchemaReader) {
    for word in ["minimum", "maximum"] {
      guard let node = words[word] else { continue }
      guard type == .integer || type == .number else {
        reader.report(node, "'\(word)' is only for integer and number")
        continue
      }
      guard let value = value(node, &reader) else { continue }
      guard let bound = try? Attribute(type: type).accepting(value) else {
        reader.report(node, "'\(word)' must be \(type.article)")
        continue
      }
      if word == "minimum" { attribute.minimum = bound } else { attribute.maximum = bound }
    }
    if let minimum = attribute.minimum, let maximum = attribute.maximum, Attribute.isLess(maximum, minimum),
      let node = words["maximum"]
    {
      reader.report(node, "the maximum is less than the minimum")
    }
  }

  private func readText(into attribute: inout Attribute, _ reader: inout SchemaReader) {
    for word in ["minLength", "maxLength", "pattern"] {
      guard let node = words[word], type != .string else { continue }
      reader.report(node, "'\(word)' is only for string")
    }
    attribute.minLength = words["minLength"].flatMap { reader.length($0, "'minLength'") }
    attribute.maxLength = words["maxLength"].flatMap { reader.length($0, "'maxLength'") }
    if let minLength = attribute.minLength, let maxLength = attribute.maxLength, maxLength < minLength,
      let node = words["maxLength"]
    {
      reader.report(node, "maxLength is less than minLength")
    }
    if let node = words["pattern"], let text = reader.string(node, "'pattern'") {
      do throws(RegexError) {
        attribute.pattern = try Pattern(text.content)
      } catch {
        reader.report(node, "'pattern' is not a regular expression: \(error.message)")
      }
    }
  }

  private func readEnum(_ node: Node, _ attribute: Attribute, _ reader: inout SchemaReader) -> [Value]? {
    guard case .sequence(let sequence) = node, !sequence.isEmpty else {
      reader.report(node, "'enum' must be a list of at least one value")
      return nil
    }
    var values: [Value] = []
    for element in sequence {
      guard let value = value(element, &reader) else { continue }
      do throws(Attribute.Refusal) {
        values.append(try attribute.accepting(value))
      } catch {
        reader.report(element, "the enum's \(value.json) \(error.reason)")
      }
    }
    return values
  }

  /// Returns the JSON value of a YAML node, or its text if a string or date is wanted. Reports and returns nil for a
  /// value that JSON does not have.
  private func value(_ node: Node, _ reader: inout SchemaReader) -> Value? {
    switch node {
    case .scalar(let scalar):
      return value(of: scalar, node, &reader)
    case .sequence(let sequence):
      return .array(sequence.compactMap { value($0, &reader) })
    case .mapping(let mapping):
      var object = JSONObject()
      for (name, member) in mapping {
        guard let text = reader.string(name, "a name in an object")?.content else { continue }
        if object[text] != nil { reader.report(name, "declared twice: \(text)") }
        object[text] = value(member, &reader)
      }
      return .object(object)
    case .alias:
      reader.report(node, "an alias is not allowed here")
      return nil
    }
  }

  private func value(of scalar: Node.Scalar, _ node: Node, _ reader: inout SchemaReader) -> Value? {
    let content = YAMLScalar(scalar)
    if (type == .string || type == .date) && content != .null { return .string(scalar.string) }
    switch content {
    case .null: return .null
    case .bool(let bool): return .bool(bool)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return number
    case .text: return .string(scalar.string)
    case .refused(let reason):
      reader.report(node, reason)
      return nil
    }
  }
}

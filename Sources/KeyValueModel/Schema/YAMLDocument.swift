package import Yams

/// A document of YAML 1.2: a schema or a configuration file.
package enum YAMLDocument {
  /// Returns the root of `text`, or nil if the text is empty. Throws for a text that is not YAML, for a mapping that
  /// has a name twice, and for a tag outside the core schema.
  package static func root(of text: String) throws(YAMLMistake) -> Node? {
    let root: Node?
    do {
      root = try compose(yaml: text)
    } catch {
      throw mistake(error, in: text)
    }
    if let root { try checkTags(root, isName: false) }
    return root
  }

  /// Returns the JSON value of `text`, with each alias replaced by the contents of its anchor. Also throws for a name
  /// that is not a scalar and for a number that JSON does not have.
  package static func value(of text: String) throws(YAMLMistake) -> Value {
    guard let node = try root(of: text) else { return .null }
    return try value(node)
  }

  private static func value(_ node: Node) throws(YAMLMistake) -> Value {
    switch node {
    case .scalar(let scalar):
      switch YAMLScalar(scalar) {
      case .null: return .null
      case .bool(let bool): return .bool(bool)
      case .integer(let integer): return .integer(integer)
      case .number(let number): return number
      case .text: return .string(scalar.string)
      case .refused(let reason): throw YAMLMistake(place(of: node), reason)
      }
    case .sequence(let sequence):
      var elements: [Value] = []
      for element in sequence { elements.append(try value(element)) }
      return .array(elements)
    case .mapping(let mapping):
      var object = JSONObject()
      for (name, member) in mapping {
        guard case .scalar(let scalar) = name else { throw YAMLMistake(place(of: name), "a name must be a text") }
        object[scalar.string] = try value(member)
      }
      return .object(object)
    // The parser has replaced the alias by its node.
    case .alias: return .null
    }
  }

  private static func place(of node: Node) -> Place { node.mark.map(Place.init) ?? Place(line: 1, column: 1) }

  // MARK: Tags

  private static let coreTags = ["null", "bool", "int", "float", "str", "seq", "map"]

  /// Throws for a tag outside the core schema. Names of mappings may have tags of YAML 1.1: the parser gives them the
  /// tags that they look like, because it compares them while reading.
  private static func checkTags(_ node: Node, isName: Bool) throws(YAMLMistake) {
    let tag: Tag
    switch node {
    case .scalar(let scalar): tag = scalar.tag
    case .sequence(let sequence):
      tag = sequence.tag
      for element in sequence { try checkTags(element, isName: isName) }
    case .mapping(let mapping):
      tag = mapping.tag
      for (name, value) in mapping {
        try checkTags(name, isName: true)
        try checkTags(value, isName: isName)
      }
    case .alias: return
    }
    let prefix = "tag:yaml.org,2002:"
    let name = tag.rawValue
    guard !name.isEmpty, name != "!", !(isName && name.hasPrefix(prefix)),
      !coreTags.contains(where: { name == prefix + $0 })
    else { return }
    let written = name.hasPrefix(prefix) ? "!!" + name.dropFirst(prefix.count) : name
    throw YAMLMistake(
      place(of: node),
      "the tag \(written) is unknown; the known tags are \(coreTags.map { "!!" + $0 }.joined(separator: ", ")). "
        + "A text that begins with '!' needs quotation marks")
  }

  // MARK: Syntax

  private static func mistake(_ error: any Error, in text: String) -> YAMLMistake {
    switch error {
    case YamlError.scanner(let context, let problem, let mark, _),
      YamlError.parser(let context, let problem, let mark, _),
      YamlError.composer(let context, let problem, let mark, _):
      return mistake(problem, Place(mark), (context?.mark).map(Place.init), in: text)
    case YamlError.duplicatedKeysInMapping(let names, let context):
      let first = Place(context.mark)
      let second = DuplicateName(name: names[0], first: first).place(in: text)
      return YAMLMistake(
        second ?? first,
        "declared twice: \(names.joined(separator: ", "))"
          + (second.map { _ in "; first on line \(first.line)" } ?? ""))
    case YamlError.reader(_, let offset, let value, _):
      let place = text.place(of: text.index(text.startIndex, offsetBy: offset ?? 0))
      let digits = String(value, radix: 16, uppercase: true)
      let code = "U+" + String(repeating: "0", count: max(0, 4 - digits.count)) + digits
      return YAMLMistake(place, "not YAML: the character \(code) is not allowed, not even in quotation marks")
    default: return YAMLMistake(Place(line: 1, column: 1), "not YAML: it cannot be read")
    }
  }

  /// Describes a mistake of the parser in plain words. `start` is the beginning of the part that `problem` is about.
  private static func mistake(_ problem: String, _ place: Place, _ start: Place?, in text: String) -> YAMLMistake {
    let scalar = text.scalar(at: place)
    if scalar == "\t" || problem.contains("tab character") {
      return YAMLMistake(place, "not YAML: a tab cannot indent a line; use spaces")
    }
    let beginning = start.map { " that begins on line \($0.line), column \($0.column)," } ?? ""
    let words: String
    switch problem {
    case "found character that cannot start any token":
      words = "a text cannot begin with '\(scalar.map(String.init) ?? "?")'; put it in quotation marks"
    case "mapping values are not allowed in this context":
      words =
        "a ':' is not allowed here; a text with ': ' in it needs quotation marks, a name begins in the column of its "
        + "neighbours, and the line above may lack its ':'"
    case "block sequence entries are not allowed in this context":
      words =
        "a '-' is not allowed here; a list begins on a line of its own, and a text that begins with '- ' needs "
        + "quotation marks"
    case "could not find expected ':'":
      // The parser notices the mistake lines later than the name that has it.
      return YAMLMistake(start ?? place, "not YAML: a ':' is missing after this name")
    case "found unexpected end of stream", "found unexpected document indicator":
      return YAMLMistake(start ?? place, "not YAML: the quotation mark that opens here is not closed")
    case "found unknown escape character":
      words = "the escape sequence is not known; between double quotation marks a backslash is written '\\\\'"
    case "did not find expected alphabetic or numeric character":
      words = "a text cannot begin with '&' or '*'; put it in quotation marks"
    case "did not find expected ',' or '}'": words = "the '{'\(beginning) is not closed, or a ',' is missing"
    case "did not find expected ',' or ']'": words = "the '['\(beginning) is not closed, or a ',' is missing"
    case "did not find expected key", "did not find expected '-' indicator":
      words =
        text.isFirst(place)
        ? "the indentation of this line matches no line of the part\(beginning) to which it belongs"
        : "nothing may follow here; a quotation mark within a quoted text is written twice"
    case "did not find expected <document start>": words = "nothing may follow here; check the indentation and brackets"
    case "did not find expected node content":
      words = scalar == nil ? "the text ends too early; a '[' or '{' is not closed" : "a value is missing here"
    case "found undefined tag handle":
      words = "the tag is unknown; a text that begins with '!' needs quotation marks"
    case "found undefined alias":
      words = "no '&' above has this name; a text that begins with '*' needs quotation marks"
    case "but found another document": words = "a second document begins here; the file may have only one"
    default: words = problem
    }
    return YAMLMistake(place, "not YAML: \(words)")
  }

  /// A name that occurs more than once in a mapping. The parser reports the place of the first occurrence only.
  private struct DuplicateName {
    let name: String
    let first: Place

    /// Returns the place of the second occurrence; nil if it is written differently from the first. Of all places with
    /// the name, it is the last one such that changing it and all later ones leaves the parser nothing to report.
    func place(in text: String) -> Place? {
      guard !name.isEmpty, let start = text.index(of: first) else { return nil }
      let places = text[start...].ranges(of: name).dropFirst().map(\.self)
      var (right, wrong) = (0, places.count)
      guard wrong > 0, isSingle(text, places[...]) else { return nil }
      while wrong - right > 1 {
        let middle = (right + wrong) / 2
        if isSingle(text, places[middle...]) { right = middle } else { wrong = middle }
      }
      var index = places[right].lowerBound
      if let before = text[..<index].last, before == "\"" || before == "'" { index = text.index(before: index) }
      return text.place(of: index)
    }

    /// Returns true if the name occurs once after the texts at `places` are changed.
    private func isSingle(_ text: String, _ places: ArraySlice<Range<String.Index>>) -> Bool {
      var changed = ""
      var end = text.startIndex
      for (number, place) in places.enumerated() {
        changed += text[end..<place.upperBound] + "_\(number)_"
        end = place.upperBound
      }
      do {
        _ = try compose(yaml: changed + text[end...])
      } catch YamlError.duplicatedKeysInMapping(let names, let context) {
        return !names.contains(name) || Place(context.mark) != first
      } catch {
        return false
      }
      return true
    }
  }
}

/// The error for a text that is not the YAML that Keyway reads, with its place.
package struct YAMLMistake: Error, Hashable, Sendable {
  /// The line, counted from 1.
  package let line: Int
  /// The column, counted from 1 in Unicode scalars.
  package let column: Int
  /// The mistake and its remedy, as a clause.
  package let message: String

  fileprivate init(_ place: Place, _ message: String) {
    (line, column, self.message) = (place.line, place.column, message)
  }
}

extension Place {
  fileprivate init(_ mark: Mark) { self.init(line: mark.line, column: mark.column) }
}

extension String {
  /// Returns the line and column of an index.
  fileprivate func place(of index: Index) -> Place {
    let before = self[..<index]
    let line = before.lastIndex(where: \.isNewline).map { before[before.index(after: $0)...] } ?? before
    return Place(line: before.count(where: \.isNewline) + 1, column: line.unicodeScalars.count + 1)
  }

  /// Returns the index of a line and column; nil if the text has no such place.
  fileprivate func index(of place: Place) -> Index? {
    let lines = split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    guard place.line >= 1, place.line <= lines.count else { return nil }
    let line = lines[place.line - 1]
    return line.unicodeScalars.index(
      line.startIndex, offsetBy: place.column - 1, limitedBy: line.endIndex)
  }

  /// Returns true if only blanks precede a place in its line.
  fileprivate func isFirst(_ place: Place) -> Bool {
    index(of: place).map { self[..<$0].reversed().prefix { !$0.isNewline }.allSatisfy(\.isWhitespace) } ?? true
  }

  fileprivate func scalar(at place: Place) -> Unicode.Scalar? {
    guard let index = index(of: place), index < endIndex else { return nil }
    return unicodeScalars[index]
  }
}

/// The value of a YAML scalar by the core schema of YAML 1.2 (chapter 10.3): `yes` and `1_000` are strings, `010` is 10
/// and `0o17` is 15. Quotation marks or the tag `!!str` make any scalar a string.
package enum YAMLScalar: Hashable, Sendable {
  /// An empty scalar, `~` or `null`.
  case null
  /// `true` or `false`.
  case bool(Bool)
  /// A whole number of 64 bits.
  case integer(Int64)
  /// Another number, as JSON parses it: a `number`, or `rounded` if a double cannot hold it exactly.
  case number(Value)
  /// The scalar's own text.
  case text
  /// A number that JSON does not have, or a scalar that does not fit its tag; with the reason as a sentence.
  case refused(String)

  /// Creates the value of a scalar.
  package init(_ scalar: Node.Scalar) {
    let tag = scalar.tag.rawValue.replacing("tag:yaml.org,2002:", with: "")
    guard tag != "str", tag != "!" else {
      self = .text
      return
    }
    self = Self.plain(scalar.string)
    guard !tag.isEmpty else { return }
    switch (tag, self) {
    case (_, .refused), ("null", .null), ("bool", .bool), ("int", .integer), ("float", .number): break
    case ("float", .integer(let integer)): self = .number(.number(Double(integer)))
    default: self = .refused("'\(scalar.string)' does not fit the tag !!\(tag)")
    }
  }

  private static func plain(_ text: String) -> YAMLScalar {
    switch text {
    case "", "~", "null", "Null", "NULL": return .null
    case "true", "True", "TRUE": return .bool(true)
    case "false", "False", "FALSE": return .bool(false)
    default: break
    }
    // Every number begins with one of these characters; trying the expressions on every text would take long.
    guard let first = text.utf8.first, "+-.0123456789".utf8.contains(first) else { return .text }
    if let digits = text.wholeMatch(of: /0o([0-7]+)/)?.1 { return integer(digits, radix: 8, text) }
    if let digits = text.wholeMatch(of: /0x([0-9a-fA-F]+)/)?.1 { return integer(digits, radix: 16, text) }
    if text.wholeMatch(of: /[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)/) != nil {
      return .refused("JSON has no number '\(text)'; a text needs quotation marks")
    }
    guard let match = text.wholeMatch(of: /[-+]?(\.[0-9]+|[0-9]+(?<fraction>\.[0-9]*)?)(?<exponent>[eE][-+]?[0-9]+)?/)
    else { return .text }
    // The JSON parser determines which numbers with an exponent are whole.
    if let value = try? Value(json: text) {
      if case .integer(let integer) = value { return .integer(integer) }
      return .number(value)
    }
    if match.fraction == nil, match.exponent == nil, let integer = Int64(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else { return .refused("the number '\(text)' is too large") }
    return .number(.number(number))
  }

  private static func integer(_ digits: Substring, radix: Int, _ text: String) -> YAMLScalar {
    Int64(digits, radix: radix).map(YAMLScalar.integer) ?? .refused("the number '\(text)' is too large")
  }
}

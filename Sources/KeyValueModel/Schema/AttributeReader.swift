import CEL
import Yams

/// Reads the constraints and the default of one attribute.
struct AttributeReader {
  let type: AttributeType
  let words: Node.Mapping

  /// The attribute; its mistakes go to `reader`.
  func read(reportingTo reader: inout SchemaReader) -> Attribute {
    var attribute = Attribute(type: type)
    readRange(into: &attribute, &reader)
    readText(into: &attribute, &reader)
    if let node = words["enum"] { attribute.allowedValues = readEnum(node, attribute, &reader) }
    // A collection has no default; the reader of its words reports that.
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
        reader.report(node, "'\(word)' goes with integer and number")
        continue
      }
      guard let value = value(node, &reader) else { continue }
      guard let bound = try? Attribute(type: type).accepting(value) else {
        reader.report(node, "'\(word)' wants \(type.article)")
        continue
      }
      if word == "minimum" { attribute.minimum = bound } else { attribute.maximum = bound }
    }
    if let minimum = attribute.minimum, let maximum = attribute.maximum, Attribute.isLess(maximum, minimum),
      let node = words["maximum"]
    {
      reader.report(node, "the maximum is under the minimum")
    }
  }

  private func readText(into attribute: inout Attribute, _ reader: inout SchemaReader) {
    for word in ["minLength", "maxLength", "pattern"] {
      guard let node = words[word], type != .string else { continue }
      reader.report(node, "'\(word)' goes with string")
    }
    attribute.minLength = words["minLength"].flatMap { reader.length($0, "'minLength'") }
    attribute.maxLength = words["maxLength"].flatMap { reader.length($0, "'maxLength'") }
    if let minLength = attribute.minLength, let maxLength = attribute.maxLength, maxLength < minLength,
      let node = words["maxLength"]
    {
      reader.report(node, "maxLength is under minLength")
    }
    if let node = words["pattern"], let text = reader.string(node, "'pattern'") {
      do throws(RegexError) {
        attribute.pattern = try Pattern(text.content)
      } catch {
        reader.report(node, "'pattern' is no regular expression: \(error.message)")
      }
    }
  }

  private func readEnum(_ node: Node, _ attribute: Attribute, _ reader: inout SchemaReader) -> [Value]? {
    guard case .sequence(let sequence) = node, !sequence.isEmpty else {
      reader.report(node, "'enum' wants a list of at least one value")
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

  /// A YAML value as JSON would have it, and text where a string or date is wanted. Nil for one that JSON does not
  /// have, which is reported.
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
      reader.report(node, "an alias cannot stand here")
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

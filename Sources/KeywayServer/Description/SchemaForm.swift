import KeyValueModel

/// A schema of the description of the API: JSON Schema, draft 2020-12, which OpenAPI 3.1 uses as it is.
package struct SchemaForm: Sendable {
  /// The schema as it is written.
  var json: JSONObject

  init(_ json: JSONObject) { self.json = json }

  /// Any JSON value.
  package static let any = SchemaForm([:])
  /// True or false.
  package static let bool = SchemaForm(["type": .string("boolean")])
  /// A text.
  package static let text = SchemaForm(["type": .string("string")])
  /// A whole number from 0.
  static let count = whole(from: 0)
  /// A number.
  static let number = SchemaForm(["type": .string("number")])
  /// An object whose members are not fixed.
  package static let map = SchemaForm(["type": .string("object")])

  /// A whole number from `minimum` on.
  package static func whole(from minimum: Int) -> SchemaForm {
    SchemaForm(["type": .string("integer"), "minimum": .integer(Int64(minimum))])
  }

  /// A text that a regular expression matches.
  package static func text(matching pattern: String) -> SchemaForm {
    SchemaForm(["type": .string("string"), "pattern": .string(pattern)])
  }

  /// One of some texts.
  static func word(_ words: [String]) -> SchemaForm {
    SchemaForm(["type": .string("string"), "enum": .array(words.map(Value.string))])
  }

  /// A list.
  package static func list(of item: SchemaForm) -> SchemaForm {
    SchemaForm(["type": .string("array"), "items": .object(item.json)])
  }

  /// An object whose members are named freely and are alike.
  package static func map(of member: SchemaForm) -> SchemaForm {
    SchemaForm(["type": .string("object"), "additionalProperties": .object(member.json)])
  }

  /// An object with these members and no other; all but the `optional` ones are always there.
  package static func object(_ members: KeyValuePairs<String, SchemaForm>, optional: Set<String> = []) -> SchemaForm {
    var properties = JSONObject()
    for (name, schema) in members { properties[name] = .object(schema.json) }
    let required = members.map(\.key).filter { !optional.contains($0) }
    return SchemaForm([
      "type": .string("object"), "properties": .object(properties), "required": .array(required.map(Value.string)),
      "additionalProperties": .bool(false),
    ])
  }

  /// One of the schemas under `components`.
  static func named(_ name: String) -> SchemaForm {
    SchemaForm(["$ref": .string("#/components/schemas/\(name)")])
  }

  /// What at least one of several schemas describes.
  static func anyOf(_ forms: [SchemaForm]) -> SchemaForm {
    SchemaForm(["anyOf": .array(forms.map { .object($0.json) })])
  }

  /// The same, or null.
  var orNull: SchemaForm { .anyOf([self, SchemaForm(["type": .string("null")])]) }

  /// The same with a sentence about it.
  func described(_ text: String) -> SchemaForm {
    var form = self
    form.json["description"] = .string(text)
    return form
  }
}

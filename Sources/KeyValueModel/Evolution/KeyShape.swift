/// What sort of values a stored key has: between keys of one shape values go over, between others they are converted.
struct KeyShape: Hashable, Sendable, CustomStringConvertible {
  /// The type of the value, or of the members; nil for references.
  let type: AttributeType?
  let isCollection: Bool

  /// The shape as it is called in a sentence: `number`, `toOne`, `toMany of string`.
  var description: String {
    guard let type else { return isCollection ? "toMany" : "toOne" }
    return isCollection ? "toMany of \(type.rawValue)" : type.rawValue
  }
}

extension Key {
  /// The shape of what it stores; of a computed key there is none.
  var shape: KeyShape? {
    switch kind {
    case .attribute(let attribute): KeyShape(type: attribute.type, isCollection: false)
    case .toOne: KeyShape(type: nil, isCollection: false)
    case .toMany(let toMany): KeyShape(type: toMany.valueAttribute?.type, isCollection: true)
    case .computed: nil
    }
  }

  /// The constraints of the value or of the members; nil where they are references.
  var valueAttribute: Attribute? {
    switch kind {
    case .attribute(let attribute): attribute
    case .toMany(let toMany): toMany.valueAttribute
    case .toOne, .computed: nil
    }
  }

  /// Whether the places of members are chosen.
  var isOrdered: Bool {
    if case .toMany(let toMany) = kind { return toMany.isOrdered }
    return false
  }
}

extension ToMany {
  /// The constraints of the members, where they are values.
  var valueAttribute: Attribute? {
    if case .value(let attribute) = member { return attribute }
    return nil
  }
}

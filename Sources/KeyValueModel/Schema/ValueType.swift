/// What the values of a key or a key path are, as far as the schema says.
public indirect enum ValueType: Hashable, Sendable {
  /// A value of an attribute type, or null.
  case attribute(AttributeType)
  /// A reference to an object of the entity or of one that extends it, or null.
  case object(String)
  /// A list.
  case list(ValueType)

  /// The type of the elements, for a list.
  public var element: ValueType? {
    if case .list(let element) = self { return element }
    return nil
  }

  /// What is found when every list is opened.
  var innermost: ValueType {
    if case .list(let element) = self { return element.innermost }
    return self
  }

  /// This type in as many lists as `other` is.
  func nested(like other: ValueType) -> ValueType {
    if case .list(let element) = other { return .list(nested(like: element)) }
    return self
  }

  /// A noun with its article, for sentences.
  var article: String {
    switch self {
    case .attribute(let type): type.article
    case .object(let entity): "a reference to \(entity)"
    case .list: "a list"
    }
  }
}

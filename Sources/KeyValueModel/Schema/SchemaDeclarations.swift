/// A place in the schema file, counted from 1.
struct Place {
  let line: Int
  let column: Int
}

/// A name of the file with its place, for messages.
struct Located<Content> {
  let content: Content
  let mark: Place
}

/// An entity as the file declares it, before anything is looked up.
struct EntityDeclaration {
  let name: Located<String>
  var parent: Located<String>?
  var keys: [KeyDeclaration] = []
  var display: [Located<String>]?
}

/// A key as the file declares it.
struct KeyDeclaration {
  enum Kind {
    case attribute(Attribute)
    case toOne(destination: Located<String>, inverse: Located<String>?, deleteRule: ToOne.DeleteRule)
    case computed(path: Located<String>, type: AttributeType?)
  }

  let name: Located<String>
  let kind: Kind
  let isOptional: Bool
  let notifying: Key.Notifying
}

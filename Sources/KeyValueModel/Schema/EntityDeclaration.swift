import Yams

/// An entity as the file declares it, before anything is looked up.
struct EntityDeclaration {
  let name: Located<String>
  var parent: Located<String>?
  var keys: [KeyDeclaration] = []
  var display: [Located<String>]?
  var access = AccessDeclaration()
}

/// A key as the file declares it.
struct KeyDeclaration {
  enum Member {
    case objects(Located<String>, inverse: Located<String>?, deleteRule: DeleteRule)
    case values(Attribute)
  }

  enum Kind {
    case attribute(Attribute)
    case toOne(destination: Located<String>, inverse: Located<String>?, deleteRule: DeleteRule)
    case toMany(Member, isOrdered: Bool)
    case computed(LocatedText, type: AttributeType?)
  }

  let name: Located<String>
  let kind: Kind
  let isOptional: Bool
  let notifying: Key.Notifying
  let isIndexed: Bool

  /// The relationship's other side: the entity as it was written, and the inverse where there is one.
  var relationship: (destination: Located<String>, inverse: Located<String>?)? {
    switch kind {
    case .toOne(let destination, let inverse, _): (destination, inverse)
    case .toMany(.objects(let destination, let inverse, _), _): (destination, inverse)
    default: nil
    }
  }
}

/// Rules as the file declares them, before anything is looked up.
struct AccessDeclaration {
  /// The rules of one key.
  struct KeyRules {
    let name: Located<String>
    var read: LocatedText?
    var update: LocatedText?
    var inverse: LocatedText?
  }

  var actions: [AccessRules.Action: LocatedText] = [:]
  var keys: [KeyRules] = []
}

/// A place in the schema file, counted from 1.
struct Place: Equatable {
  let line: Int
  let column: Int
}

/// A name of the file with its place, for messages.
struct Located<Content> {
  let content: Content
  let mark: Place
}

/// A text of the file with what it takes to say where in the file one of its characters stands.
struct LocatedText {
  let content: String
  let mark: Place
  /// Whether the text stands in the file as it is, on one line: then a column of it is a column of the file. Elsewhere
  /// (escapes, folded lines) only its beginning has a place.
  let isVerbatim: Bool

  /// The place of a line and column of the text, both from 1.
  func place(line: Int, column: Int) -> Place {
    guard isVerbatim, line == 1 else { return mark }
    return Place(line: mark.line, column: mark.column + column - 1)
  }
}

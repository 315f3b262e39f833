import Yams

/// An entity as the file declares it, before any name is resolved.
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

  /// The other side of a relationship: the entity as written, and the inverse if there is one. Nil for all other keys.
  var relationship: (destination: Located<String>, inverse: Located<String>?)? {
    switch kind {
    case .toOne(let destination, let inverse, _): (destination, inverse)
    case .toMany(.objects(let destination, let inverse, _), _): (destination, inverse)
    default: nil
    }
  }
}

/// Rules as the file declares them, before any name is resolved.
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

/// A name in the file with its place, for messages.
struct Located<Content> {
  let content: Content
  let mark: Place
}

/// A text in the file, with the information needed to locate one of its characters in the file.
struct LocatedText {
  let content: String
  let mark: Place
  /// True if the text is written in the file literally and on one line, so that a column of the text maps to a column
  /// of the file. For other texts (with escapes or folded lines) only the beginning has a place.
  let isVerbatim: Bool

  /// Returns the place in the file of a line and column of the text, both counted from 1.
  func place(line: Int, column: Int) -> Place {
    guard isVerbatim, line == 1 else { return mark }
    return Place(line: mark.line, column: mark.column + column - 1)
  }
}

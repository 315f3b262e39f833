/// What stands between data and a new schema: it would be lost or break a rule.
package struct MigrationObstacle: Hashable, Sendable, CustomStringConvertible {
  /// An object that is concerned.
  package struct Example: Hashable, Sendable, CustomStringConvertible {
    /// The object, by its new name.
    package let object: Reference
    /// What is the matter with it where that differs from object to object: `is -5, under the minimum 0`.
    package let reason: String?

    /// Object and reason.
    package var description: String { reason.map { "\(object) \($0)" } ?? object.text }
  }

  /// The most objects that are named.
  package static var maximumExamples: Int { 3 }

  /// The entity by its new name, or its old one where it is not in the new schema; nil for a step with a mistake.
  package let entity: String?
  /// The key, where the obstacle is about one.
  package let key: String?
  /// The reason, as a clause: `number becomes string`.
  package let reason: String
  /// The step that deals with it, with `NEW` and `VALUE` for the operator to choose; nil where none does.
  package let remedy: String?
  /// How many objects are concerned; nil where no object was looked at.
  package internal(set) var count: Int?
  /// The first of them, in the order of references.
  package internal(set) var examples: [Example] = []

  init(entity: String?, key: String? = nil, reason: String, remedy: String? = nil) {
    self.entity = entity
    self.key = key
    self.reason = reason
    self.remedy = remedy
  }

  /// Everything in a line: ``Account.balance: number becomes string (2 objects: Account/1, Account/2); `convert
  /// Account.balance` ``.
  package var description: String {
    var text = entity.map { entity in "\(key.map { "\(entity).\($0)" } ?? entity): " } ?? ""
    text += reason
    if let count {
      let isPlain = examples.allSatisfy { $0.reason == nil }
      let names = examples.map(\.description) + (count > examples.count ? ["…"] : [])
      text += " (\(count) \(count == 1 ? "object" : "objects"): \(names.joined(separator: isPlain ? ", " : "; ")))"
    }
    if let remedy { text += "; \(remedy)" }
    return text
  }
}

/// Data cannot go on under a new schema. Nothing has been changed.
package struct MigrationRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// The most obstacles that are listed.
  package static var maximumObstacles: Int { 100 }

  /// The obstacles: the steps with mistakes, or else the rest by the order of the schema; at most
  /// `maximumObstacles`.
  package let obstacles: [MigrationObstacle]
  /// How many obstacles there are, those that are not listed included; at least one.
  package let count: Int

  init(_ obstacles: [MigrationObstacle]) {
    self.obstacles = Array(obstacles.prefix(Self.maximumObstacles))
    count = obstacles.count
  }

  /// One obstacle a line, behind a line that says how many there are.
  package var description: String {
    let head = count == 1 ? "one thing stands" : "\(count) things stand"
    var lines = ["the data cannot go on under the new schema; \(head) in the way:"]
    lines += obstacles.map { "  \($0)" }
    if count > obstacles.count { lines.append("  and \(count - obstacles.count) more") }
    return lines.joined(separator: "\n")
  }
}

/// A reason why data cannot be used under a new schema: values would be lost or would break a rule.
package struct MigrationObstacle: Hashable, Sendable, CustomStringConvertible {
  /// An affected object.
  package struct Example: Hashable, Sendable, CustomStringConvertible {
    /// The object, by its new name.
    package let object: Reference
    /// The reason that applies to this object, if it differs from object to object: `is -5, under the minimum 0`.
    package let reason: String?

    /// The object and the reason.
    package var description: String { reason.map { "\(object) \($0)" } ?? object.text }
  }

  /// The maximum number of objects named as examples.
  package static var maximumExamples: Int { 3 }

  /// The entity's new name, or its old name if it is not in the new schema; nil for a mistake in a step.
  package let entity: String?
  /// The key, if the obstacle is about one.
  package private(set) var key: String?
  /// The reason, as a clause: `number becomes string`.
  package let reason: String
  /// The step that resolves the obstacle, with `NEW` and `VALUE` for the operator to replace; nil if no step does.
  package private(set) var remedy: String?
  /// The number of affected objects; nil if no object was checked.
  package internal(set) var count: Int?
  /// The first affected objects, in the order of references.
  package internal(set) var examples: [Example] = []

  /// The obstacle on one line: ``Account.balance: number becomes string (2 objects: Account/1, Account/2); `convert
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

/// The error for data that cannot be used under a new schema. Nothing has been changed.
package struct MigrationRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  /// The maximum number of obstacles listed.
  package static var maximumObstacles: Int { 100 }

  /// The obstacles: the mistakes of steps if there are any, or else all others in the order of the schema. At most
  /// `maximumObstacles`.
  package let obstacles: [MigrationObstacle]
  /// The number of obstacles, including those not listed; at least one.
  package let count: Int

  init(_ obstacles: [MigrationObstacle]) {
    self.obstacles = Array(obstacles.prefix(Self.maximumObstacles))
    count = obstacles.count
  }

  /// The number of obstacles on a line, followed by one line for each.
  package var description: String {
    let head = count == 1 ? "one obstacle" : "\(count) obstacles"
    var lines = ["the data cannot be used under the new schema; \(head):"]
    lines += obstacles.map { "  \($0)" }
    if count > obstacles.count { lines.append("  and \(count - obstacles.count) more") }
    return lines.joined(separator: "\n")
  }
}

/// The obstacles found in objects, counted by place, with the first objects of each.
struct ObstacleTally {
  /// The maximum length of a reason in characters, since values may be long.
  private static let reasonLimit = 160

  private var obstacles: [MigrationSite: MigrationObstacle] = [:]

  var isEmpty: Bool { obstacles.isEmpty }

  /// Counts an object for the obstacle at a place.
  mutating func note(_ site: MigrationSite, _ object: Reference, _ reason: String? = nil) {
    var obstacle = obstacles.removeValue(forKey: site) ?? site.obstacle
    obstacle.count = (obstacle.count ?? 0) + 1
    let place = obstacle.examples.firstIndex { object < $0.object } ?? obstacle.examples.count
    if place < MigrationObstacle.maximumExamples {
      obstacle.examples.insert(.init(object: object, reason: reason.map(Self.shortened)), at: place)
      if obstacle.examples.count > MigrationObstacle.maximumExamples { obstacle.examples.removeLast() }
    }
    obstacles[site] = obstacle
  }

  /// The obstacles in the order of the schema.
  var all: [MigrationObstacle] { obstacles.sorted { $0.key < $1.key }.map(\.value) }

  private static func shortened(_ reason: String) -> String {
    reason.utf8.count > reasonLimit ? reason.prefix(reasonLimit) + "…" : reason
  }
}

/// A place of the new schema with one kind of obstacle: objects with the same one are counted together. Ordered as
/// obstacles are listed.
struct MigrationSite: Hashable, Sendable, Comparable {
  /// The kinds of obstacles, in the order in which the obstacles of one key are listed.
  enum Rank: Int, Sendable {
    case removal, shape, value, order, inverse, absence
  }

  let entityOrder: Int
  var keyOrder = -1
  let entity: String
  let key: String?
  let rank: Rank
  let reason: String
  let remedy: String?

  /// Returns a site for an obstacle at this place.
  func with(_ rank: Rank, _ reason: String, remedy: String?) -> MigrationSite {
    MigrationSite(
      entityOrder: entityOrder, keyOrder: keyOrder, entity: entity, key: key, rank: rank, reason: reason,
      remedy: remedy)
  }

  /// The obstacle, without objects.
  var obstacle: MigrationObstacle { MigrationObstacle(entity: entity, key: key, reason: reason, remedy: remedy) }

  static func < (left: MigrationSite, right: MigrationSite) -> Bool {
    (left.entityOrder, left.keyOrder, left.rank.rawValue, left.reason, left.remedy ?? "")
      < (right.entityOrder, right.keyOrder, right.rank.rawValue, right.reason, right.remedy ?? "")
  }
}

extension MigrationSite {
  /// Creates the site of a key of the new schema, as a basis for the sites of its obstacles.
  init(_ entity: Entity, _ index: Int, _ key: Key) {
    self.init(
      entityOrder: entity.index, keyOrder: index, entity: entity.name, key: key.name, rank: .value, reason: "",
      remedy: nil)
  }
}

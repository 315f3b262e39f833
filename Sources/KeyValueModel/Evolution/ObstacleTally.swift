/// The obstacles that objects meet, counted by place, with the first objects of each.
struct ObstacleTally {
  /// The most characters of a reason: values may be long.
  private static let reasonLimit = 160

  private var obstacles: [MigrationSite: MigrationObstacle] = [:]

  var isEmpty: Bool { obstacles.isEmpty }

  /// Counts an object at a place.
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

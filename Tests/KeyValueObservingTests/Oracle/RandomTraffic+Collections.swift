import KeyValueModel
import TestKit

extension RandomTraffic {
  /// Makes an operation on a collection. Most of them fit the present members.
  mutating func collectionOperation(
    _ object: Reference, path: [String], _ world: OracleWorld
  ) -> KeyValueModel.Operation {
    let text = path.joined(separator: ".")
    var owner: String? = object.text
    for name in path.dropLast() { owner = owner.flatMap { world.target($0, name) } }
    let holder = owner ?? object.text
    guard let name = path.last, case .toMany(let member, let isOrdered, _, _) = world.key(holder, name)?.kind else {
      return .removeMembers(object, keyPath: text, [])
    }
    let present = world.list(holder, name)
    switch Int.random(in: 0..<8, using: &random) {
    case 0, 1: return .insert(object, keyPath: text, members(member, present, world), at: nil)
    case 2 where isOrdered, 3 where isOrdered:
      let members = members(member, present, world)
      return .insert(object, keyPath: text, members, at: places(members.count, upTo: present.count + members.count))
    case 4 where isOrdered:
      return .removeIndexes(object, keyPath: text, places(Int.random(in: 0..<3, using: &random), upTo: present.count))
    case 5 where isOrdered, 6 where isOrdered:
      let places = places(Int.random(in: 1..<3, using: &random), upTo: present.count)
      var members = members(member, present, world)
      // A member may replace itself, or another member that is removed.
      if let place = places.first, present.indices.contains(place), Int.random(in: 0..<4, using: &random) == 0 {
        members = [.value(plain(present[place]))]
      }
      let count = min(places.count, members.count)
      return .replace(object, keyPath: text, at: Array(places.prefix(count)), Array(members.prefix(count)))
    case 2, 3, 4, 5, 6:
      let mutation = SetMutation.allCases.randomElement(using: &random) ?? .union
      var members = members(member, present, world)
      if let one = present.randomElement(using: &random), Bool.random(using: &random) {
        members.append(.value(plain(one)))
      }
      return .mutateSet(object, keyPath: text, mutation, members)
    default:
      var gone = present.filter { _ in Bool.random(using: &random) }.map(plain)
      if let other = self.member(member, world) { gone.append(other) }
      return .removeMembers(object, keyPath: text, gone.shuffled(using: &random))
    }
  }

  /// Returns a value as a client writes it.
  private func plain(_ value: Value) -> Value {
    if case .reference(let reference) = value { return .string(reference.text) }
    return value
  }

  /// Makes members, most of which are not in the collection yet. Some are created in place.
  private mutating func members(
    _ sort: OracleSchema.Sort, _ present: [Value], _ world: OracleWorld
  ) -> [NewMember] {
    var chosen: [Value] = []
    var members: [NewMember] = []
    for _ in 0..<Int.random(in: 0..<4, using: &random) {
      if case .object(let entity) = sort, Int.random(in: 0..<5, using: &random) == 0 {
        let free = (1...idCount).map { "\(entity)/\($0)" }.filter { world.objects[$0] == nil }
        guard let name = free.randomElement(using: &random), let reference = Reference(name) else { continue }
        members.append(.object(reference, body(name, world, rarely: true)))
        continue
      }
      guard let value = member(sort, world), !chosen.contains(value) else { continue }
      if present.contains(where: { plain($0) == value }), Int.random(in: 0..<8, using: &random) > 0 { continue }
      chosen.append(value)
      members.append(.value(value))
    }
    return members
  }

  private mutating func places(_ count: Int, upTo limit: Int) -> [Int] {
    let limit = Int.random(in: 0..<40, using: &random) == 0 ? limit + 1 : limit
    return Array((0..<max(limit, 0)).shuffled(using: &random).prefix(count))
  }
}

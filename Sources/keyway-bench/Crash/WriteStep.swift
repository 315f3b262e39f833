import TestKit

/// One write of the crash test: what becomes of a writer's objects, and how the server is asked for it.
enum WriteStep: Hashable, Sendable {
  /// Adds one to a counter, by setting its key path.
  case count(Int)
  /// Moves an amount from one half to the other, in one transaction.
  case transfer(Int)
  /// Creates an item, under a name of the writer's or, by POST, of the server's.
  case create(isNamed: Bool)
  /// Deletes the item at a place.
  case delete(Int)
  /// Puts so many new entries into the list, from an index on.
  case insert(count: Int, at: Int)
  /// Takes the entry at an index out of the list and deletes it.
  case remove(Int)
  /// All at once, in one transaction: a counter, both halves, an item that goes, one that comes, an entry.
  case all(counter: Int, amount: Int)

  /// A step that a writer can take from where its objects are.
  static func random(from objects: WriterObjects, using random: inout SplitMix64) -> WriteStep {
    let counter = Int.random(in: 0..<WriterObjects.counterCount, using: &random)
    let amount = Int.random(in: 1...100, using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6: return .count(counter)
    case 6..<9: return .transfer(amount)
    case 9..<13:
      if objects.items.count < 2 || objects.items.count < WriterObjects.maximumItems && random.chance(55) {
        return .create(isNamed: random.chance(50))
      }
      return .delete(Int.random(in: objects.items.indices, using: &random))
    case 13..<18:
      if objects.entries.isEmpty || objects.entries.count < WriterObjects.maximumEntries && random.chance(55) {
        return .insert(
          count: Int.random(in: 1...3, using: &random), at: Int.random(in: 0...objects.entries.count, using: &random))
      }
      return .remove(Int.random(in: objects.entries.indices, using: &random))
    default: return .all(counter: counter, amount: amount)
    }
  }
}

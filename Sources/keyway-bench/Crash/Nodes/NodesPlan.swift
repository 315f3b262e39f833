import ArgumentParser

/// What a crash test of several nodes does.
struct NodesPlan: Hashable, Sendable {
  /// What the nodes have in common.
  enum Kind: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
    /// The first takes the writes, and the others follow it or one another.
    case followers
    /// All take writes, over one PostgreSQL of the test's own.
    case peers
  }

  var kind: Kind
  /// How many nodes there are.
  var nodes: Int
  /// How many times there is load with faults, and then a comparison.
  var rounds: Int
  /// Where the randomness begins: which requests there are, which faults, and when. What the processes make of it is
  /// not in its hands.
  var seed: UInt64
  /// Where everything is kept: the schema, the stores, what the nodes write.
  var directory: String
  /// How many clients write.
  var writers: Int
  /// The program whose `serve` is tested.
  var program: String

  /// The schema file in `directory`.
  var schemaFile: String { directory + "/schema.yaml" }

  /// Where a node keeps its store.
  func store(of node: Int) -> String { directory + "/store-\(node)" }

  /// Where a node logs to.
  func logFile(of node: Int) -> String { directory + "/node-\(node).log" }
}

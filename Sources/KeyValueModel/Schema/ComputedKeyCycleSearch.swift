/// Looks for computed keys whose dependencies lead back to themselves, by way of other objects as well.
///
/// The objects along a path may be of any subclass, so a key that a subclass declares anew counts too.
struct ComputedKeyCycleSearch {
  /// A computed key of one entity.
  struct Node: Hashable {
    let entity: Int
    let key: Int
  }

  private let schema: Schema
  private var finished: Set<Node> = []
  private var trail: [Node] = []
  private var found: [[Node]] = []

  init(schema: Schema) {
    self.schema = schema
  }

  /// Each cycle once, as the nodes along it, the first one again at the end.
  mutating func cycles() -> [[Node]] {
    for entity in schema.entities {
      for key in entity.keys.indices { visit(Node(entity: entity.index, key: key)) }
    }
    return found
  }

  private mutating func visit(_ node: Node) {
    if let start = trail.firstIndex(of: node) {
      found.append(Array(trail[start...]) + [node])
      return
    }
    guard !finished.contains(node), case .computed(let computed) = schema.entities[node.entity].keys[node.key].kind
    else { return }
    trail.append(node)
    for reads in [computed.reads] + computed.inheritedReads {
      for next in computedKeys(in: reads, from: schema.entities[node.entity]) { visit(next) }
    }
    trail.removeLast()
    finished.insert(node)
  }

  private func computedKeys(in reads: KeyTree, from entity: Entity) -> [Node] {
    var nodes: [Node] = []
    for branch in reads.branches {
      for member in schema.family(of: entity) {
        if case .computed = member.keys[branch.key].kind { nodes.append(Node(entity: member.index, key: branch.key)) }
      }
      guard !branch.behind.isEmpty, let owner = schema.destination(of: entity.keys[branch.key]) else { continue }
      nodes += computedKeys(in: branch.behind, from: owner)
    }
    return nodes
  }
}

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
    for path in [computed.path] + computed.inheritedPaths {
      for next in computedKeys(along: path, from: schema.entities[node.entity]) { visit(next) }
    }
    trail.removeLast()
    finished.insert(node)
  }

  private func computedKeys(along path: [Int], from entity: Entity) -> [Node] {
    var nodes: [Node] = []
    var owner: Entity? = entity
    for key in path {
      guard let current = owner else { break }
      for member in schema.family(of: current) {
        if case .computed = member.keys[key].kind { nodes.append(Node(entity: member.index, key: key)) }
      }
      owner = schema.destination(of: current.keys[key], in: current)
    }
    return nodes
  }
}

import CEL

extension KeyTree {
  /// What an expression reads, its names looked up in the schema. What it reads inside JSON values ends at their key.
  init(_ reads: KeyReads, of entity: Entity, in schema: Schema) {
    self.init()
    // In the order of the keys, so that the same expression always has the same tree.
    for (name, below) in reads.children.sorted(by: { $0.key < $1.key }) {
      guard let key = entity.indexOfKey(name) else { continue }
      let destination = schema.destination(of: entity.keys[key])
      let inner = entity.keys[key].isToMany ? below.elements : below
      let behind = destination.flatMap { target in inner.map { KeyTree($0, of: target, in: schema) } } ?? KeyTree()
      merge(KeyTree(path: CollectionOfOne(key), behind: behind))
    }
  }
}

extension Schema {
  /// The indexes of named keys along a path; empty where one is not there.
  func keys(along path: [String], from entity: Entity) -> [Int] {
    var owner: Entity? = entity
    var keys: [Int] = []
    for name in path where !(keys.isEmpty && name == Expression.rootVariable) {
      guard let current = owner, let key = current.indexOfKey(name) else { return [] }
      keys.append(key)
      owner = destination(of: current.keys[key])
    }
    return keys
  }

  /// The entity of the members of the collection at the end of a path, `.some(nil)` where they are values, and nil
  /// where there is no collection.
  func collectionMember(along keys: [Int], from entity: Entity) -> Entity?? {
    var owner = entity
    for key in keys.dropLast() {
      guard let next = destination(of: owner.keys[key]) else { return nil }
      owner = next
    }
    guard let last = keys.last, case .toMany(let toMany) = owner.keys[last].kind else { return nil }
    return .some(toMany.destination.flatMap { self.entity(named: $0) })
  }
}

import KeyValueModel

/// The operations that set relationships, all of whose objects are there.
enum LinkOperations {
  private struct Assertion: Hashable {
    let object: Reference
    let key: String
    let target: Reference
  }

  /// In the order of the lines. A to-one that the other side says too is left out: a to-many says it with the order of
  /// its members, and of two to-ones the first is enough.
  static func operations(_ links: [ImportLink]) -> [PlannedOperation] {
    var said: Set<Assertion> = []
    for link in links where link.isToMany { said.formUnion(inverses(of: link)) }
    var operations: [PlannedOperation] = []
    // Several of one line stay in the order in which they came.
    for (_, link) in links.enumerated().sorted(by: { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }) {
      if !link.isToMany, let target = link.targets.first {
        if said.contains(Assertion(object: link.owner, key: link.key, target: target)) { continue }
        said.formUnion(inverses(of: link))
      }
      operations.append(PlannedOperation(line: link.line, object: link.owner, kind: .set(key: link.key, link.value)))
    }
    return operations
  }

  private static func inverses(of link: ImportLink) -> [Assertion] {
    guard let inverse = link.inverse else { return [] }
    return link.targets.map { Assertion(object: $0, key: inverse, target: link.owner) }
  }
}

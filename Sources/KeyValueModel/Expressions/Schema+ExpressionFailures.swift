extension Schema {
  /// How often each computed key's expression has failed so far, for keys that have one; under the entity that declares
  /// it.
  package var expressionFailures: [(entity: String, key: String, count: Int)] {
    var found: [(entity: String, key: String, count: Int)] = []
    var seen: Set<ObjectIdentifier> = []
    for entity in entities {
      for key in entity.keys {
        guard case .computed(let computed) = key.kind, case .expression(let expression)? = computed.formula,
          seen.insert(ObjectIdentifier(expression)).inserted
        else { continue }
        found.append((entity.name, key.name, expression.failureCount))
      }
    }
    return found
  }
}

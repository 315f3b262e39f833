/// Relationships: that the other sides are there, and that inverses name one another.
extension SchemaCompiler {
  mutating func resolveRelationships() {
    let schema = Schema(entities: entities(display: false))
    for position in drafts.indices {
      for declaration in drafts[position].declaration.keys {
        guard let (destination, inverse) = declaration.relationship else { continue }
        guard let target = schema.entity(named: destination.content) else {
          let types = AttributeType.allCases.map(\.rawValue).joined(separator: ", ")
          let hint = if case .toMany = declaration.kind { "; a collection of values has one of \(types)" } else { "" }
          report(destination.mark, schema.unknown(destination.content) + hint)
          continue
        }
        guard let inverse else { continue }
        let owner = drafts[position].declaration.name.content
        if let index = inverseIndex(inverse, in: target, of: declaration.name.content, owner: owner) {
          setInverseIndex(index, of: declaration.name.content, inFamilyOf: owner)
        }
      }
    }
  }

  private mutating func inverseIndex(
    _ inverse: Located<String>, in target: Entity, of key: String, owner: String
  ) -> Int? {
    guard let index = target.indexOfKey(inverse.content) else {
      report(inverse.mark, target.undefined(inverse.content))
      return nil
    }
    guard let back = target.keys[index].relationship, back.destination == owner, back.inverse == key else {
      report(
        inverse.mark,
        "\(target.name).\(inverse.content) must be a toOne or toMany \(owner) whose inverse is '\(key)'")
      return nil
    }
    return index
  }

  private mutating func setInverseIndex(_ index: Int, of key: String, inFamilyOf owner: String) {
    for position in drafts.indices where drafts[position].lineage.contains(owner) {
      guard let keyIndex = drafts[position].keys.firstIndex(where: { $0.name == key }) else { continue }
      switch drafts[position].keys[keyIndex].kind {
      case .toOne(var toOne):
        toOne.inverseIndex = index
        drafts[position].keys[keyIndex].kind = .toOne(toOne)
      case .toMany(var toMany):
        toMany.inverseIndex = index
        drafts[position].keys[keyIndex].kind = .toMany(toMany)
      case .attribute, .computed: break
      }
    }
  }
}

extension Key {
  /// The other side of a relationship, nil for everything else.
  var relationship: (destination: String, inverse: String?, inverseIndex: Int?, deleteRule: DeleteRule)? {
    switch kind {
    case .toOne(let toOne): return (toOne.destination, toOne.inverse, toOne.inverseIndex, toOne.deleteRule)
    case .toMany(let toMany):
      guard let destination = toMany.destination else { return nil }
      return (destination, toMany.inverse, toMany.inverseIndex, toMany.deleteRule)
    case .attribute, .computed: return nil
    }
  }
}

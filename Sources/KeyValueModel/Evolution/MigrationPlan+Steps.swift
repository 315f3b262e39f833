/// Steps that name what the new schema does not have, or values that it does not take.
extension MigrationPlan {
  /// A conversion of values that another step drops has nothing to do, and is no mistake.
  mutating func checkConversions() {
    for conversion in names.conversions where !usedConversions.contains(conversion.step) {
      if names.entities.contains(where: { $0.name == conversion.entity && $0.droppedBy != nil }) { continue }
      let entity = new.entity(named: conversion.entity)
      let key = entity.flatMap { entity in entity.indexOfKey(conversion.key).map { entity.keys[$0] } }
      guard key?.storage == nil else { continue }
      report(conversion.step, "the new schema has no stored key '\(conversion.key)' in \(conversion.entity)")
    }
  }

  mutating func checkFills() {
    for fill in names.fills {
      guard let value = fill.value else { continue }
      guard let entity = new.entity(named: fill.entity) else {
        report(fill.step, "the new schema has no entity '\(fill.entity)'")
        continue
      }
      guard let index = entity.indexOfKey(fill.key), entity.keys[index].storage != nil else {
        report(fill.step, "the new schema has no stored key '\(fill.key)' in \(fill.entity)")
        continue
      }
      do throws(Attribute.Refusal) {
        _ = try accepted(value, entity.keys[index])
      } catch {
        report(fill.step, "the value \(error.reason)")
      }
    }
  }

  /// What a fill stores; whether an object that it names is there is seen later.
  func accepted(_ value: Value, _ key: Key) throws(Attribute.Refusal) -> Value {
    switch key.kind {
    case .attribute(let attribute): return try attribute.accepting(value)
    case .toOne(let toOne):
      guard case .string(let text) = value, let target = Reference(text),
        new.entity(of: target)?.isKind(of: toOne.destination) == true
      else { throw Attribute.Refusal(reason: "is no reference to \(toOne.destination)") }
      return .reference(target)
    case .toMany: throw Attribute.Refusal(reason: "goes nowhere: '\(key.name)' is a collection, which is never null")
    case .computed: throw Attribute.Refusal(reason: "goes nowhere: '\(key.name)' is computed")
    }
  }
}

import Support

/// Steps that name what the new schema does not have, or values that it does not take.
extension MigrationPlan {
  /// A conversion of values that another step drops has nothing to do, and is no mistake.
  mutating func checkConversions() {
    for conversion in names.conversions where !usedConversions.contains(conversion.step) {
      if names.entities.contains(where: { $0.name == conversion.entity && $0.droppedBy != nil }) { continue }
      let entity = new.entity(named: conversion.entity)
      let key = entity.flatMap { entity in entity.indexOfKey(conversion.key).map { entity.keys[$0] } }
      guard key?.storage == nil else { continue }
      report(conversion.step, missingKey(conversion, entity))
    }
  }

  /// Reports each set key that is not stored, is a collection, or has a type that the expression's values cannot have.
  mutating func checkSettings() {
    for step in names.settings {
      guard let expression = step.setting?.expression else { continue }
      guard let entity = new.entity(named: step.entity) else {
        report(step.step, "the new schema has no entity '\(step.entity)'\(hint(forEntity: step.entity))")
        continue
      }
      guard let index = entity.indexOfKey(step.key), entity.keys[index].storage != nil else {
        report(step.step, missingKey(step, entity))
        continue
      }
      let key = entity.keys[index]
      if key.isToMany {
        report(step.step, "'\(step.key)' is a collection; 'set' gives one value")
      } else if let type = key.valueType, !type.mayTake(expression.type) {
        report(step.step, "the expression gives \(expression.type.article), and '\(step.key)' takes \(type.article)")
      }
    }
  }

  mutating func checkFills() {
    for fill in names.fills {
      guard let value = fill.value else { continue }
      guard let entity = new.entity(named: fill.entity) else {
        report(fill.step, "the new schema has no entity '\(fill.entity)'\(hint(forEntity: fill.entity))")
        continue
      }
      guard let index = entity.indexOfKey(fill.key), entity.keys[index].storage != nil else {
        report(fill.step, missingKey(fill, entity))
        continue
      }
      do throws(Attribute.Refusal) {
        _ = try accepted(value, entity.keys[index])
      } catch {
        report(fill.step, "the value \(error.reason)")
      }
    }
  }

  /// Says that a step names no stored key of the new schema.
  private func missingKey(_ step: EvolvingNames.KeyStep, _ entity: Entity?) -> String {
    let keys = entity?.keys.filter { $0.storage != nil }.map(\.name) ?? []
    return "the new schema has no stored key '\(step.key)' in \(step.entity)"
      + NearestName.hint(for: step.key, among: keys)
  }

  private func hint(forEntity name: String) -> String {
    NearestName.hint(for: name, among: new.entities.map(\.name))
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

extension ValueType {
  /// Returns true if a value of a key of this type may come from an expression of another type: a number may be whole,
  /// a text a date.
  fileprivate func mayTake(_ type: ValueType) -> Bool {
    switch (self, type) {
    // An expression of unknown type may give anything.
    case (.attribute(.json), .attribute), (.attribute(.json), .list), (_, .attribute(.json)): true
    case (.attribute(.integer), .attribute(.number)), (.attribute(.number), .attribute(.integer)): true
    case (.attribute(.date), .attribute(.string)), (.attribute(.string), .attribute(.date)): true
    case (.object, .object), (.object, .attribute(.string)): true
    default: self == type
    }
  }
}

/// Rules: which one holds for each entity, and what it means there.
extension SchemaCompiler {
  /// The rules of each entity. Each is looked for alone: in the entity, in its parents from the nearest on, in what the
  /// file says for all.
  mutating func rules(_ common: AccessDeclaration, in schema: Schema) -> [AccessRules] {
    var rules: [AccessRules] = []
    for (entity, draft) in zip(schema.entities, drafts) {
      let declarations = draft.lineage.compactMap { name in
        drafts.first { $0.declaration.name.content == name }?.declaration.access
      }
      var found = AccessRules()
      for action in AccessRules.Action.allCases {
        guard let text = (declarations + [common]).lazy.compactMap({ $0.actions[action] }).first else { continue }
        found.actions[action] = rule(text, of: entity, in: schema, seeing: action.scope)
      }
      addKeyRules(declarations, of: entity, in: schema, to: &found)
      checkKeys(draft.declaration.access, of: entity)
      rules.append(found)
    }
    return rules
  }

  private mutating func addKeyRules(
    _ declarations: [AccessDeclaration], of entity: Entity, in schema: Schema, to rules: inout AccessRules
  ) {
    // The nearest declaration of each comes last.
    for declared in declarations.reversed().flatMap(\.keys) {
      guard let key = entity.indexOfKey(declared.name.content) else { continue }
      if let text = declared.read {
        rules.keys[key, default: .init()].read = rule(text, of: entity, in: schema, seeing: .identity)
      }
      if let text = declared.update {
        rules.keys[key, default: .init()].update = rule(text, of: entity, in: schema, seeing: .identity)
      }
    }
  }

  private mutating func checkKeys(_ access: AccessDeclaration, of entity: Entity) {
    for declared in access.keys {
      let name = declared.name
      guard let key = entity.indexOfKey(name.content) else {
        report(name.mark, "access: \(entity.undefined(name.content))")
        continue
      }
      if let update = declared.update, entity.keys[key].storage == nil {
        report(update.mark, "access: '\(name.content)' is computed, so that there is nothing to update")
      }
    }
  }

  private mutating func rule(
    _ text: LocatedText, of entity: Entity, in schema: Schema, seeing scope: AccessRule.Scope
  ) -> AccessRule? {
    do throws(KeyExpression.Mistake) {
      return try AccessRule(text.content, of: entity, in: schema, seeing: scope)
    } catch {
      let position = text.isVerbatim ? "" : " (line \(error.line), column \(error.column) of the rule)"
      report(text.place(line: error.line, column: error.column), "access: \(error.message)\(position)")
      return nil
    }
  }
}

/// Rules: which one holds for each entity, and what it means there.
extension SchemaCompiler {
  /// The rules of each entity. Each is looked for alone: in the entity, in its parents from the nearest on, in what the
  /// file says for all.
  mutating func rules(_ common: AccessDeclaration, in schema: Schema) -> [AccessRules] {
    var rules: [AccessRules] = []
    for (entity, draft) in zip(schema.entities, drafts) {
      var found = AccessRules()
      for action in AccessRules.Action.allCases {
        guard let text = text(of: action, draft, common) else { continue }
        found.actions[action] = rule(text, of: entity, in: schema, seeing: action.scope)
      }
      addKeyRules(declarations(of: draft), of: entity, in: schema, to: &found)
      checkKeys(draft.declaration.access, of: entity, in: schema)
      rules.append(found)
    }
    return rules
  }

  /// The declarations that hold for an entity, its own first.
  private func declarations(of draft: Draft) -> [AccessDeclaration] {
    draft.lineage.compactMap { name in
      drafts.first { $0.declaration.name.content == name }?.declaration.access
    }
  }

  private func text(
    of action: AccessRules.Action, _ draft: Draft, _ common: AccessDeclaration
  ) -> LocatedText? {
    (declarations(of: draft) + [common]).lazy.compactMap { $0.actions[action] }.first
  }

  /// Warns about rules that read what others change without being asked there.
  mutating func warnAboutUnguardedKeys(_ common: AccessDeclaration, in schema: Schema) {
    for (entity, draft) in zip(schema.entities, drafts) {
      for action in AccessRules.Action.allCases {
        guard let rule = entity.rules.actions[action], let text = text(of: action, draft, common) else { continue }
        for (key, inverse) in schema.unguardedKeys(in: rule.reads, of: entity) {
          warn(
            text.mark,
            "access: the rule '\(action)' reads '\(key)', and writes that set its inverse '\(inverse)' change that "
              + "without asking the 'update' rule here; read '\(inverse)' instead, or restrict who may set it")
        }
      }
    }
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
      if let text = declared.inverse {
        rules.keys[key, default: .init()].inverse = rule(text, of: entity, in: schema, seeing: .identity)
      }
    }
  }

  private mutating func checkKeys(_ access: AccessDeclaration, of entity: Entity, in schema: Schema) {
    for declared in access.keys {
      let name = declared.name
      guard let key = entity.indexOfKey(name.content) else {
        report(name.mark, "access: \(entity.undefined(name.content))")
        continue
      }
      if let update = declared.update, entity.keys[key].storage == nil {
        report(update.mark, "access: '\(name.content)' is computed, so that there is nothing to update")
      }
      if let inverse = declared.inverse, schema.farSide(of: entity.keys[key]) != .mutual {
        report(
          inverse.mark,
          "access: 'inverse' is only for a toMany whose inverse is a toMany as well, and '\(name.content)' is not one")
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

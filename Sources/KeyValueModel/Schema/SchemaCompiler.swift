import Support

/// Turns declarations into a schema: inheritance, storage, relationships, computed keys, display.
struct SchemaCompiler {
  /// An entity under way: its keys change until every computed one is resolved.
  struct Draft {
    let declaration: EntityDeclaration
    let parent: String?
    let lineage: [String]
    var keys: [Key]
    var marks: [String: Place]
  }

  private(set) var problems: [SchemaError.Problem] = []
  /// Passages that are valid and probably not meant so.
  private(set) var warnings: [SchemaError.Problem] = []
  var drafts: [Draft] = []

  /// The schema; meaningful only where `problems` stays empty.
  mutating func compile(_ declarations: [EntityDeclaration], access: AccessDeclaration) -> Schema {
    drafts = inherit(declarations)
    // Without one of the entities, everything that names it would be an echo.
    guard drafts.count == declarations.count else { return Schema(entities: []) }
    resolveRelationships()
    resolveComputedKeys()
    var schema = Schema(entities: entities(display: false))
    guard checkOverrides(schema) else { return schema }
    inheritReads()
    schema = Schema(entities: entities(display: false))
    checkCycles(schema)
    guard problems.isEmpty else { return schema }
    let rules = rules(access, in: schema)
    schema = Schema(entities: entities(display: true, resolvedIn: schema, rules, FarKeys(of: schema)))
    warnAboutUnguardedKeys(access, in: schema)
    return Schema(
      entities: schema.entities, warnings: warnings.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
  }

  /// Notes a mistake; one that every subclass shares, once.
  mutating func report(_ mark: Place?, _ message: String) {
    let problem = SchemaError.Problem(line: mark?.line ?? 1, column: mark?.column ?? 1, message: message)
    if !problems.contains(problem) { problems.append(problem) }
  }

  /// Notes what is valid and probably a mistake; once.
  mutating func warn(_ mark: Place, _ message: String) {
    let warning = SchemaError.Problem(line: mark.line, column: mark.column, message: message)
    if !warnings.contains(warning) { warnings.append(warning) }
  }

  mutating func entities(
    display: Bool, resolvedIn schema: Schema? = nil, _ rules: [AccessRules] = [], _ farKeys: FarKeys = FarKeys()
  ) -> [Entity] {
    drafts.enumerated().map { index, draft in
      var paths: [ModelKeyPath] = []
      var keyPaths: [ModelKeyPath?] = []
      if display, let schema {
        let entity = schema.entities[index]
        paths = displayPaths(draft, entity, schema)
        keyPaths = entity.keys.map { try? schema.resolve($0.name, from: entity) }
      }
      return Entity(
        name: draft.declaration.name.content, index: index, parent: draft.parent, lineage: Set(draft.lineage),
        keys: draft.keys, display: paths, keyPaths: keyPaths,
        rules: index < rules.count ? rules[index] : AccessRules(), farKeys: farKeys.ofEntity[index] ?? [])
    }
  }

  private mutating func displayPaths(_ draft: Draft, _ entity: Entity, _ schema: Schema) -> [ModelKeyPath] {
    guard let declared = draft.declaration.display else {
      return entity.keys.indices.filter { !entity.keys[$0].isToMany }.compactMap {
        try? schema.resolve(entity.keys[$0].name, from: entity)
      }
    }
    var paths: [ModelKeyPath] = []
    for text in declared {
      do throws(ModelError) {
        paths.append(try schema.resolveObservable(text.content, from: entity))
      } catch {
        report(text.mark, "display: \(error.detail)")
      }
    }
    return paths
  }
}

// MARK: - Inheritance

extension SchemaCompiler {
  /// Parents before children, each with all its keys; in the order of the file otherwise.
  private mutating func inherit(_ declarations: [EntityDeclaration]) -> [Draft] {
    var byName: [String: Draft] = [:]
    var waiting = declarations
    while !waiting.isEmpty {
      let ready = waiting.filter { $0.parent.map { byName[$0.content] != nil } ?? true }
      guard !ready.isEmpty else { break }
      for declaration in ready { byName[declaration.name.content] = draft(declaration, byName) }
      waiting.removeAll { byName[$0.name.content] != nil }
    }
    for declaration in waiting {
      guard let parent = declaration.parent else { continue }
      let isDeclared = declarations.contains { $0.name.content == parent.content }
      let hint = NearestName.hint(for: parent.content, among: declarations.map(\.name.content))
      report(
        parent.mark,
        isDeclared ? "'\(parent.content)' extends itself" : "there is no entity '\(parent.content)'\(hint)")
    }
    return declarations.compactMap { byName[$0.name.content] }
  }

  private mutating func draft(_ declaration: EntityDeclaration, _ others: [String: Draft]) -> Draft {
    let parent = declaration.parent.flatMap { others[$0.content] }
    var draft = Draft(
      declaration: declaration, parent: parent?.declaration.name.content,
      lineage: [declaration.name.content] + (parent?.lineage ?? []), keys: parent?.keys ?? [],
      marks: parent?.marks ?? [:])
    for key in declaration.keys { add(key, to: &draft) }
    return draft
  }

  private mutating func add(_ declaration: KeyDeclaration, to draft: inout Draft) {
    let name = declaration.name.content
    draft.marks[name] = declaration.name.mark
    let position = draft.keys.firstIndex { $0.name == name }
    if let position {
      guard case .computed = draft.keys[position].kind, case .computed = declaration.kind else {
        report(declaration.name.mark, "'\(name)' is inherited; only a computed key can be declared anew, as computed")
        return
      }
    }
    let isStored: Bool = if case .computed = declaration.kind { false } else { true }
    let key = Key(
      name: name, kind: Self.kind(declaration.kind, inherited: position.map { draft.keys[$0] }),
      isOptional: declaration.isOptional,
      notifying: declaration.notifying, isIndexed: declaration.isIndexed,
      storage: isStored ? draft.keys.count { $0.storage != nil } : nil)
    if let position { draft.keys[position] = key } else { draft.keys.append(key) }
  }

  /// `inherited` is the key that is declared anew: a computed one keeps the type that is stated there.
  private static func kind(_ kind: KeyDeclaration.Kind, inherited: Key?) -> Key.Kind {
    switch kind {
    case .attribute(let attribute): .attribute(attribute)
    case .toOne(let destination, let inverse, let rule):
      .toOne(ToOne(destination: destination.content, inverse: inverse?.content, deleteRule: rule))
    case .toMany(.objects(let destination, let inverse, let rule), let isOrdered):
      .toMany(
        ToMany(
          member: .object(entity: destination.content), isOrdered: isOrdered, inverse: inverse?.content,
          deleteRule: rule))
    case .toMany(.values(let attribute), let isOrdered):
      .toMany(ToMany(member: .value(attribute), isOrdered: isOrdered, inverse: nil, deleteRule: .nullify))
    case .computed(let text, let type):
      .computed(ComputedKey(text: text.content, declaredType: type ?? inherited?.declaredType))
    }
  }
}

import Support

/// Turns declarations into a schema: inheritance, storage, relationships, computed keys, display.
struct SchemaCompiler {
  /// An entity being compiled: its keys change until every computed key is resolved.
  private struct Draft {
    let declaration: EntityDeclaration
    let parent: String?
    let lineage: [String]
    var keys: [Key]
    var marks: [String: Place]
  }

  private(set) var problems: [SchemaError.Problem] = []
  /// The warnings: passages that are valid but probably a mistake.
  private(set) var warnings: [SchemaError.Problem] = []
  private var drafts: [Draft] = []

  /// Returns the schema, which is meaningful only if `problems` stays empty.
  mutating func compile(_ declarations: [EntityDeclaration], access: AccessDeclaration) -> Schema {
    drafts = inherit(declarations)
    // Without one of the entities, every declaration that names it would cause another error.
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
    schema = Schema(entities: entities(display: true, resolvedIn: schema, rules, RemoteReadKeys(of: schema)))
    warnAboutUnguardedKeys(access, in: schema)
    return Schema(
      entities: schema.entities, warnings: warnings.sorted { ($0.line, $0.column) < ($1.line, $1.column) })
  }

  /// Reports a mistake; one that every subclass shares is reported once.
  private mutating func report(_ mark: Place?, _ message: String) {
    let problem = SchemaError.Problem(line: mark?.line ?? 1, column: mark?.column ?? 1, message: message)
    if !problems.contains(problem) { problems.append(problem) }
  }

  /// Reports once a passage that is valid but probably a mistake.
  private mutating func warn(_ mark: Place, _ message: String) {
    let warning = SchemaError.Problem(line: mark.line, column: mark.column, message: message)
    if !warnings.contains(warning) { warnings.append(warning) }
  }

  private mutating func entities(
    display: Bool, resolvedIn schema: Schema? = nil, _ rules: [AccessRules] = [],
    _ farKeys: RemoteReadKeys = RemoteReadKeys()
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
  /// Returns a draft for each entity, with all its keys, in the order of the file. Parents are compiled before
  /// children.
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
        isDeclared ? "'\(parent.content)' extends itself" : "the schema has no entity '\(parent.content)'\(hint)")
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
        report(declaration.name.mark, "'\(name)' is inherited; only a computed key can be redeclared, as computed")
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

  /// Returns the kind of a declared key. `inherited` is the key that it redeclares: a computed key keeps the type
  /// declared there.
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

// MARK: - Relationships

/// Relationships: the destinations must exist, and inverses must name each other.
extension SchemaCompiler {
  private mutating func resolveRelationships() {
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

// MARK: - Computed keys

/// Computed keys: the resolution of their paths and expressions, their types, and the search for keys that depend on
/// themselves.
extension SchemaCompiler {
  /// The reason why a formula could not be resolved, with its place.
  private struct Failure: Error {
    let mark: Place
    let message: String
  }

  /// Resolves the formulas in rounds, since a formula may lead through another computed key. When a round makes no
  /// progress, unresolved keys count as JSON of any kind, so that cycles of undeclared types are found as cycles.
  private mutating func resolveComputedKeys() {
    while resolveRound() {}
    for failure in failures() { report(failure.mark, failure.message) }
  }

  /// Resolves the formulas that can be resolved by now. Returns true if there were any.
  private mutating func resolveRound() -> Bool {
    var isProgressing = false
    let schema = Schema(entities: entities(display: false))
    for position in drafts.indices {
      for (text, key) in unresolved(in: position) {
        guard let formula = try? Self.formula(text, schema.entities[position], schema) else { continue }
        set(formula, of: key, in: position)
        isProgressing = true
      }
    }
    return isProgressing
  }

  private mutating func failures() -> [Failure] {
    let schema = Schema(entities: entities(display: false), isLenient: true)
    var failures: [Failure] = []
    for position in drafts.indices {
      for (text, key) in unresolved(in: position) {
        do throws(Failure) {
          set(try Self.formula(text, schema.entities[position], schema), of: key, in: position)
        } catch {
          failures.append(error)
        }
      }
    }
    return failures
  }

  /// The computed keys without a formula, with their texts. Inherited keys are resolved again in each subclass: the
  /// keys that they name may be redeclared there.
  private func unresolved(in position: Int) -> [(LocatedText, String)] {
    drafts[position].keys.compactMap { key in
      guard case .computed(let computed) = key.kind, computed.formula == nil,
        let text = declaredText(of: key.name, in: position)
      else { return nil }
      return (text, key.name)
    }
  }

  /// The text of a computed key in the nearest declaration, from an entity upwards.
  private func declaredText(of key: String, in position: Int) -> LocatedText? {
    for ancestor in drafts[position].lineage {
      let draft = drafts.first { $0.declaration.name.content == ancestor }
      if case .computed(let text, _)? = draft?.declaration.keys.first(where: { $0.name.content == key })?.kind {
        return text
      }
    }
    return nil
  }

  /// Returns the formula of a text: a key path if the text has the syntax of one, an expression otherwise.
  private static func formula(
    _ text: LocatedText, _ entity: Entity, _ schema: Schema
  ) throws(Failure) -> ComputedKey.Formula {
    if let first = (try? KeyPathGrammar.components(of: text.content))?.first,
      !KeyExpression.reservedNames.contains(first.name)
    {
      do throws(ModelError) {
        let path = try schema.resolve(text.content, from: entity)
        guard !path.isBehindComputedList else {
          throw ModelError(.unobservableKeyPath, path.unobservable ?? "", keyPath: text.content)
        }
        return .path(path)
      } catch {
        throw Failure(mark: text.mark, message: error.detail)
      }
    }
    do throws(KeyExpression.Mistake) {
      return .expression(try KeyExpression(text.content, of: entity, in: schema))
    } catch {
      let position = text.isVerbatim ? "" : " (line \(error.line), column \(error.column) of the expression)"
      throw Failure(mark: text.place(line: error.line, column: error.column), message: error.message + position)
    }
  }

  private mutating func set(_ formula: ComputedKey.Formula, of key: String, in position: Int) {
    guard let index = drafts[position].keys.firstIndex(where: { $0.name == key }),
      case .computed(var computed) = drafts[position].keys[index].kind
    else { return }
    computed.resolve(to: formula)
    drafts[position].keys[index].kind = .computed(computed)
  }

  /// Adds the keys that the same key reads in ancestors, where they differ.
  private mutating func inheritReads() {
    for position in drafts.indices {
      for keyIndex in drafts[position].keys.indices {
        guard case .computed(var computed) = drafts[position].keys[keyIndex].kind else { continue }
        for ancestor in drafts[position].lineage.dropFirst() {
          guard let other = drafts.first(where: { $0.declaration.name.content == ancestor }),
            other.keys.indices.contains(keyIndex), case .computed(let inherited) = other.keys[keyIndex].kind,
            inherited.text != computed.text, inherited.reads != computed.reads,
            !computed.inheritedReads.contains(inherited.reads)
          else { continue }
          computed.inheritedReads.append(inherited.reads)
        }
        drafts[position].keys[keyIndex].kind = .computed(computed)
        checkType(of: computed, drafts[position].keys[keyIndex].name, in: position)
      }
    }
  }

  private mutating func checkType(of computed: ComputedKey, _ key: String, in position: Int) {
    guard let declared = computed.declaredType, let found = computed.formula?.type else { return }
    let isRight =
      switch found {
      case .attribute(let type):
        type == declared || declared == .json || type == .json || (declared, type) == (.number, .integer)
      case .list: declared == .json
      case .object: false
      }
    guard !isRight else { return }
    report(
      drafts[position].marks[key],
      "'\(key)' is declared as \(declared.rawValue), but '\(computed.text)' is \(found.article)")
  }

  /// Checks the types of redeclared computed keys. A path or expression is checked by the types that keys have in the
  /// entity it leads to, but also meets objects of subclasses. A redeclared computed key must therefore have the same
  /// type, unless the inherited one may have any value, or lead to objects of the same entity.
  private mutating func checkOverrides(_ schema: Schema) -> Bool {
    var areSound = true
    for (entity, draft) in zip(schema.entities, drafts) {
      for declaration in draft.declaration.keys {
        let name = declaration.name.content
        guard let parent = draft.parent.flatMap(schema.entity(named:)), let index = parent.indexOfKey(name),
          let wanted = schema.type(of: parent.keys[index]), let found = schema.type(of: entity.keys[index]),
          !Self.is(found, fitFor: wanted, in: schema)
        else { continue }
        let reason =
          if case .object(let destination) = wanted {
            "leads to a \(destination) in \(parent.name) and must do so here"
          } else {
            "is \(wanted.article) in \(parent.name) and must be so here, where it is \(found.article)"
          }
        report(declaration.name.mark, "'\(name)' \(reason)")
        areSound = false
      }
    }
    return areSound
  }

  private static func `is`(_ found: ValueType, fitFor wanted: ValueType, in schema: Schema) -> Bool {
    switch (found, wanted) {
    case (_, .attribute(.json)): true
    case (.list(let found), .list(let wanted)): Self.is(found, fitFor: wanted, in: schema)
    case (.object(let found), .object(let wanted)): schema.entity(named: found)?.isKind(of: wanted) == true
    default: found == wanted
    }
  }

  private mutating func checkCycles(_ schema: Schema) {
    var search = ComputedKeyCycleSearch(schema: schema)
    for cycle in search.cycles() {
      let names = cycle.map { "\(schema.entities[$0.entity].name).\(schema.entities[$0.entity].keys[$0.key].name)" }
      guard let first = cycle.first else { continue }
      let name = schema.entities[first.entity].keys[first.key].name
      report(drafts[first.entity].marks[name], "a computed key depends on itself: \(names.joined(separator: " → "))")
    }
  }
}

// MARK: - Rules

/// Rules: the choice of the rule that applies to each entity, and its compilation for that entity.
extension SchemaCompiler {
  /// Returns the rules of each entity. Each rule is looked up separately: in the entity, then in its ancestors from the
  /// nearest on, then in the rules of the file.
  private mutating func rules(_ common: AccessDeclaration, in schema: Schema) -> [AccessRules] {
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

  /// The declarations that apply to an entity, its own first.
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

  /// Warns about rules that read keys which writes to other objects can change without a check of the `update` rule.
  private mutating func warnAboutUnguardedKeys(_ common: AccessDeclaration, in schema: Schema) {
    for (entity, draft) in zip(schema.entities, drafts) {
      for action in AccessRules.Action.allCases {
        guard let rule = entity.rules.actions[action], let text = text(of: action, draft, common) else { continue }
        for (key, inverse) in schema.unguardedKeys(in: rule.reads, of: entity) {
          warn(
            text.mark,
            "access: the rule '\(action)' reads '\(key)', and writes that set its inverse '\(inverse)' change it "
              + "without checking the 'update' rule here; read '\(inverse)' instead, or restrict who may set it")
        }
      }
    }
  }

  private mutating func addKeyRules(
    _ declarations: [AccessDeclaration], of entity: Entity, in schema: Schema, to rules: inout AccessRules
  ) {
    // The nearest declaration of a key comes last and overrides the others.
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
        report(update.mark, "access: '\(name.content)' is computed and cannot be updated")
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

/// Finds computed keys whose dependencies lead back to themselves, also through other objects.
///
/// The objects along a path may be of any subclass, so keys redeclared by subclasses count too.
private struct ComputedKeyCycleSearch {
  /// A computed key of one entity.
  struct Node: Hashable {
    let entity: Int
    let key: Int
  }

  let schema: Schema
  private(set) var finished: Set<Node> = []
  private(set) var trail: [Node] = []
  private(set) var found: [[Node]] = []

  /// Returns each cycle once, as the nodes along it, with the first node repeated at the end.
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
    for reads in computed.notifyingReads {
      for next in computedKeys(in: reads, from: schema.entities[node.entity]) { visit(next) }
    }
    trail.removeLast()
    finished.insert(node)
  }

  private func computedKeys(in reads: KeyTree, from entity: Entity) -> [Node] {
    var nodes: [Node] = []
    for branch in reads.branches {
      for member in schema.family(of: entity) {
        if case .computed = member.keys[branch.key].kind { nodes.append(Node(entity: member.index, key: branch.key)) }
      }
      guard !branch.behind.isEmpty, let owner = schema.destination(of: entity.keys[branch.key]) else { continue }
      nodes += computedKeys(in: branch.behind, from: owner)
    }
    return nodes
  }
}

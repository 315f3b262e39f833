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
  private var drafts: [Draft] = []

  /// The schema; meaningful only where `problems` stays empty.
  mutating func compile(_ declarations: [EntityDeclaration]) -> Schema {
    drafts = inherit(declarations)
    // Without one of the entities, everything that names it would be an echo.
    guard drafts.count == declarations.count else { return Schema(entities: []) }
    resolveRelationships()
    resolveComputedKeys()
    var schema = Schema(entities: entities(display: false))
    guard checkOverrides(schema) else { return schema }
    inheritPaths()
    schema = Schema(entities: entities(display: false))
    checkCycles(schema)
    guard problems.isEmpty else { return schema }
    schema = Schema(entities: entities(display: true, resolvedIn: schema))
    return schema
  }

  /// Notes a mistake; one that every subclass shares, once.
  private mutating func report(_ mark: Place?, _ message: String) {
    let problem = SchemaError.Problem(line: mark?.line ?? 1, column: mark?.column ?? 1, message: message)
    if !problems.contains(problem) { problems.append(problem) }
  }

  private mutating func entities(display: Bool, resolvedIn schema: Schema? = nil) -> [Entity] {
    drafts.enumerated().map { index, draft in
      var paths: [ModelKeyPath] = []
      if display, let schema { paths = displayPaths(draft, schema.entities[index], schema) }
      return Entity(
        name: draft.declaration.name.content, index: index, parent: draft.parent, lineage: Set(draft.lineage),
        keys: draft.keys, display: paths)
    }
  }

  private mutating func displayPaths(_ draft: Draft, _ entity: Entity, _ schema: Schema) -> [ModelKeyPath] {
    guard let declared = draft.declaration.display else {
      return entity.keys.indices.map { ModelKeyPath(text: entity.keys[$0].name, keys: [$0]) }
    }
    var paths: [ModelKeyPath] = []
    for text in declared {
      do throws(ModelError) {
        paths.append(try schema.resolve(text.content, from: entity))
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
      report(parent.mark, isDeclared ? "'\(parent.content)' extends itself" : "there is no entity '\(parent.content)'")
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
      name: name, kind: Self.kind(declaration.kind), isOptional: declaration.isOptional,
      notifying: declaration.notifying, storage: isStored ? draft.keys.count { $0.storage != nil } : nil)
    if let position { draft.keys[position] = key } else { draft.keys.append(key) }
  }

  private static func kind(_ kind: KeyDeclaration.Kind) -> Key.Kind {
    switch kind {
    case .attribute(let attribute): .attribute(attribute)
    case .toOne(let destination, let inverse, let rule):
      .toOne(ToOne(destination: destination.content, inverse: inverse?.content, deleteRule: rule))
    case .computed(let path, let type): .computed(ComputedKey(text: path.content, declaredType: type))
    }
  }
}

// MARK: - Relationships

extension SchemaCompiler {
  private mutating func resolveRelationships() {
    let schema = Schema(entities: entities(display: false))
    for position in drafts.indices {
      for declaration in drafts[position].declaration.keys {
        guard case .toOne(let destination, let inverse, _) = declaration.kind else { continue }
        guard let target = schema.entity(named: destination.content) else {
          report(destination.mark, "there is no entity '\(destination.content)'")
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
      report(inverse.mark, "\(target.name) has no key '\(inverse.content)'")
      return nil
    }
    guard case .toOne(let back) = target.keys[index].kind, back.destination == owner, back.inverse == key else {
      report(
        inverse.mark, "\(target.name).\(inverse.content) must be a toOne \(owner) whose inverse is '\(key)'")
      return nil
    }
    return index
  }

  private mutating func setInverseIndex(_ index: Int, of key: String, inFamilyOf owner: String) {
    for position in drafts.indices where drafts[position].lineage.contains(owner) {
      guard let keyIndex = drafts[position].keys.firstIndex(where: { $0.name == key }),
        case .toOne(var toOne) = drafts[position].keys[keyIndex].kind
      else { continue }
      toOne.inverseIndex = index
      drafts[position].keys[keyIndex].kind = .toOne(toOne)
    }
  }
}

// MARK: - Computed keys

extension SchemaCompiler {
  /// Resolves in rounds, because a path may lead through another computed key that names an object.
  private mutating func resolveComputedKeys() {
    var isProgressing = true
    var failures: [(mark: Place, message: String)] = []
    while isProgressing {
      isProgressing = false
      failures = []
      let schema = Schema(entities: entities(display: false))
      for position in drafts.indices {
        for declaration in drafts[position].declaration.keys {
          guard case .computed(let text, _) = declaration.kind,
            let keyIndex = drafts[position].keys.firstIndex(where: { $0.name == declaration.name.content }),
            case .computed(let computed) = drafts[position].keys[keyIndex].kind, computed.path.isEmpty
          else { continue }
          do throws(ModelError) {
            let path = try schema.resolve(text.content, from: schema.entities[position])
            setPath(path.keys, of: declaration.name.content, from: position)
            isProgressing = true
          } catch {
            failures.append((text.mark, error.detail))
          }
        }
      }
    }
    for failure in failures { report(failure.mark, failure.message) }
  }

  /// A computed key means the same in subclasses that do not declare it anew.
  private mutating func setPath(_ path: [Int], of key: String, from owner: Int) {
    let name = drafts[owner].declaration.name.content
    let text = computedText(key, in: owner)
    for position in drafts.indices
    where drafts[position].lineage.contains(name) && computedText(key, in: position) == text {
      guard let keyIndex = drafts[position].keys.firstIndex(where: { $0.name == key }),
        case .computed(var computed) = drafts[position].keys[keyIndex].kind
      else { continue }
      computed.path = path
      drafts[position].keys[keyIndex].kind = .computed(computed)
    }
  }

  private func computedText(_ key: String, in position: Int) -> String? {
    guard case .computed(let computed)? = drafts[position].keys.first(where: { $0.name == key })?.kind else {
      return nil
    }
    return computed.text
  }

  /// The paths of the same key in all ancestors, where they differ.
  private mutating func inheritPaths() {
    for position in drafts.indices {
      for keyIndex in drafts[position].keys.indices {
        guard case .computed(var computed) = drafts[position].keys[keyIndex].kind else { continue }
        for ancestor in drafts[position].lineage.dropFirst() {
          guard let other = drafts.first(where: { $0.declaration.name.content == ancestor }),
            other.keys.indices.contains(keyIndex), case .computed(let inherited) = other.keys[keyIndex].kind,
            inherited.path != computed.path, !computed.inheritedPaths.contains(inherited.path)
          else { continue }
          computed.inheritedPaths.append(inherited.path)
        }
        drafts[position].keys[keyIndex].kind = .computed(computed)
        checkType(of: computed, drafts[position].keys[keyIndex].name, in: position)
      }
    }
  }

  private mutating func checkType(of computed: ComputedKey, _ key: String, in position: Int) {
    let schema = Schema(entities: entities(display: false))
    guard let declared = computed.declaredType,
      let end = schema.end(of: computed.path, from: schema.entities[position])
    else { return }
    let isRight: Bool
    let found: String
    switch end.key.kind {
    case .attribute(let attribute):
      isRight = attribute.type == declared || declared == .json || (declared, attribute.type) == (.number, .integer)
      found = attribute.type.rawValue
    case .toOne(let toOne): (isRight, found) = (false, "a reference to \(toOne.destination)")
    case .computed(let other):
      isRight = other.declaredType.map { $0 == declared || declared == .json } ?? true
      found = other.declaredType?.rawValue ?? ""
    }
    if !isRight {
      report(
        drafts[position].marks[key], "'\(key)' is declared as \(declared.rawValue), but '\(computed.text)' is \(found)")
    }
  }

  /// A computed key that leads to an object must do so in subclasses that declare it anew, to one of the same entity:
  /// paths go on behind it.
  private mutating func checkOverrides(_ schema: Schema) -> Bool {
    var areSound = true
    for (entity, draft) in zip(schema.entities, drafts) {
      for declaration in draft.declaration.keys {
        let name = declaration.name.content
        guard let parent = draft.parent.flatMap(schema.entity(named:)), let index = parent.indexOfKey(name),
          let wanted = schema.destination(of: parent.keys[index], in: parent)
        else { continue }
        let found = schema.destination(of: entity.keys[index], in: entity)
        if found?.isKind(of: wanted.name) != true {
          report(declaration.name.mark, "'\(name)' leads to a \(wanted.name) in \(parent.name) and must do so here")
          areSound = false
        }
      }
    }
    return areSound
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

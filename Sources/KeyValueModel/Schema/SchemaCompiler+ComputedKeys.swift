/// Computed keys: what their paths and expressions mean, of what type they are, and that none depends on itself.
extension SchemaCompiler {
  /// Why a formula could not be resolved, and where.
  private struct Failure: Error {
    let mark: Place
    let message: String
  }

  /// Resolves in rounds, because a formula may lead through another computed key. When no round gets further, what
  /// cannot be resolved is taken for JSON of any sort, so that cycles of undeclared types are found as cycles.
  mutating func resolveComputedKeys() {
    while resolveRound() {}
    for failure in failures() { report(failure.mark, failure.message) }
  }

  /// Resolves what can be resolved by now. True when that was something.
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

  /// Inherited keys are resolved once more in each subclass: what they name may have been declared anew there.
  private func unresolved(in position: Int) -> [(LocatedText, String)] {
    drafts[position].keys.compactMap { key in
      guard case .computed(let computed) = key.kind, computed.formula == nil,
        let text = declaredText(of: key.name, in: position)
      else { return nil }
      return (text, key.name)
    }
  }

  /// The text of a computed key where it was declared last, from an entity upwards.
  private func declaredText(of key: String, in position: Int) -> LocatedText? {
    for ancestor in drafts[position].lineage {
      let draft = drafts.first { $0.declaration.name.content == ancestor }
      if case .computed(let text, _)? = draft?.declaration.keys.first(where: { $0.name.content == key })?.kind {
        return text
      }
    }
    return nil
  }

  /// A text that looks like a key path is one; everything else is an expression.
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

  /// What the same key reads in all ancestors, where it differs.
  mutating func inheritReads() {
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

  /// What leads to an entity is checked by the types that its keys have there, and meets the objects of subclasses too:
  /// a computed key that a subclass declares anew is of the same type there, unless it may have any value anyway, and
  /// leads to objects of the same entity.
  mutating func checkOverrides(_ schema: Schema) -> Bool {
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

  mutating func checkCycles(_ schema: Schema) {
    var search = ComputedKeyCycleSearch(schema: schema)
    for cycle in search.cycles() {
      let names = cycle.map { "\(schema.entities[$0.entity].name).\(schema.entities[$0.entity].keys[$0.key].name)" }
      guard let first = cycle.first else { continue }
      let name = schema.entities[first.entity].keys[first.key].name
      report(drafts[first.entity].marks[name], "a computed key depends on itself: \(names.joined(separator: " → "))")
    }
  }
}

extension ComputedKey.Formula {
  var reads: KeyTree {
    switch self {
    case .path(let path): path.reads
    case .expression(let expression): expression.reads
    }
  }

  var type: ValueType {
    switch self {
    case .path(let path): path.type
    case .expression(let expression): expression.type
    }
  }
}

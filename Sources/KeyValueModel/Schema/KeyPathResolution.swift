/// Resolves the text of one key path, key by key.
struct KeyPathResolution {
  private let schema: Schema
  private let text: String
  private let entity: Entity

  /// How far the resolution has come: the keys so far, and what they lead to.
  private struct Walk {
    var keys: [Int] = []
    var type: ValueType
    /// The first collection that the walk has gone on behind.
    var crossed: String?
    /// Whether the last key is computed from something of unknown type: only while a schema is compiled.
    var isUnknown = false
    var lastName = ""
    /// Whether the last key is a computed list: those hold references too, but nothing goes on behind them.
    var endsInComputedList = false
  }

  init(schema: Schema, text: String, entity: Entity) {
    self.schema = schema
    self.text = text
    self.entity = entity
  }

  /// The path, or what is wrong with it.
  func resolve() throws(ModelError) -> ModelKeyPath {
    let components = try KeyPathGrammar.components(of: text)
    let position = components.firstIndex { $0.function != nil }
    let left = try walk(components[..<(position ?? components.count)], from: .object(entity.name))
    guard let position, let function = components[position].function else {
      return ModelKeyPath(
        text: text, keys: left.keys, operation: nil, type: left.type, reads: KeyTree(path: left.keys),
        unobservable: left.crossed.map(Self.crossing))
    }
    guard let element = left.type.element else {
      throw ModelError(
        .notACollection,
        "'\(function.rawValue)' in '\(text)' stands behind '\(left.lastName)', which is no collection", keyPath: text)
    }
    return try path(left, function, element, components[(position + 1)...])
  }

  private static func crossing(_ collection: String) -> String {
    "it goes on behind the collection '\(collection)', which can be read but not observed; an operator can be"
  }

  private static func following(_ computedList: String) -> String {
    "it reads the members of the computed list '\(computedList)', which can be read but not followed"
  }

  // MARK: Keys

  /// Walks on from a value of a type. `name` is the key that holds it, where it is a list.
  private func walk(
    _ components: ArraySlice<KeyPathGrammar.Component>, from start: ValueType, named name: String = ""
  ) throws(ModelError) -> Walk {
    var walk = Walk(type: start, lastName: name)
    for component in components {
      guard case .object(let name) = walk.type.innermost, let owner = schema.entity(named: name) else {
        throw ModelError(
          .undefinedKey, "'\(component.name)' in '\(text)' stands behind a value that has no keys", keyPath: text)
      }
      guard let index = owner.indexOfKey(component.name) else {
        throw ModelError(.undefinedKey, owner.undefined(component.name), keyPath: text)
      }
      guard let type = schema.type(of: owner.keys[index]) else {
        throw ModelError(.undefinedKey, "'\(component.name)' of \(owner.name) cannot be worked out", keyPath: text)
      }
      if walk.type.element != nil {
        if walk.crossed == nil { walk.crossed = walk.lastName }
        if walk.endsInComputedList { throw undefinedBehindList(component.name) }
      }
      if case .computed(let computed) = owner.keys[index].kind { walk.isUnknown = computed.type == nil }
      walk.keys.append(index)
      walk.type = type.nested(like: walk.type)
      walk.lastName = component.name
      walk.endsInComputedList = type.element != nil && !owner.keys[index].isToMany
    }
    return walk
  }

  private func undefinedBehindList(_ name: String) -> ModelError {
    ModelError(.undefinedKey, "'\(name)' in '\(text)' stands behind a computed list, which has no keys", keyPath: text)
  }

  // MARK: Operators

  private func path(
    _ left: Walk, _ function: CollectionOperator, _ element: ValueType,
    _ components: ArraySlice<KeyPathGrammar.Component>
  ) throws(ModelError) -> ModelKeyPath {
    let right = try memberWalk(components, element, left.lastName)
    let isBehindComputedList = !right.keys.isEmpty && left.endsInComputedList
    // Whether the operator can take the values is no question before it is clear what they are.
    let type = right.isUnknown ? .attribute(.json) : try result(of: function, over: right.type)
    let operation = CollectionOperation(
      function: function, memberKeys: right.keys, isOverDates: right.type == .attribute(.date),
      isOverNumbers: right.type == .attribute(.number))
    let fold = left.keys.last.flatMap { CollectionFold(operation, ofKey: $0) }
    let behind = function == .count ? KeyTree() : KeyTree(path: right.keys)
    return ModelKeyPath(
      text: text, keys: left.keys, operation: operation, type: type,
      reads: KeyTree(path: left.keys, fold: left.crossed == nil ? fold : nil, behind: behind),
      unobservable: isBehindComputedList
        ? Self.following(left.lastName) : (left.crossed ?? right.crossed).map(Self.crossing),
      isBehindComputedList: isBehindComputedList)
  }

  /// `self` is the member itself, as in the collections of Foundation, unless the members have a key of this name.
  private func memberWalk(
    _ components: ArraySlice<KeyPathGrammar.Component>, _ element: ValueType, _ collection: String
  ) throws(ModelError) -> Walk {
    if components.count == 1, components.first?.name == "self" {
      guard case .object(let name) = element, schema.entity(named: name)?.indexOfKey("self") != nil else {
        return Walk(type: element)
      }
    }
    return try walk(components, from: element, named: collection)
  }

  private func result(of function: CollectionOperator, over type: ValueType) throws(ModelError) -> ValueType {
    switch function {
    case .count: return .attribute(.integer)
    case .sum, .average:
      guard type == .attribute(.integer) || type == .attribute(.number) else {
        throw refusal(function, "numbers", type)
      }
      return function == .average ? .attribute(.number) : type
    case .minimum, .maximum:
      switch type {
      case .attribute(.integer), .attribute(.number), .attribute(.string), .attribute(.date): return type
      default: throw refusal(function, "numbers, strings and dates", type)
      }
    case .unionOfObjects, .distinctUnionOfObjects: return .list(type)
    case .unionOfArrays, .distinctUnionOfArrays:
      guard let element = type.element else {
        throw ModelError(
          .notACollection, "'\(function.rawValue)' in '\(text)' wants a collection of each member", keyPath: text)
      }
      return .list(element)
    }
  }

  private func refusal(_ function: CollectionOperator, _ wanted: String, _ found: ValueType) -> ModelError {
    ModelError(
      .invalidValue,
      "'\(function.rawValue)' in '\(text)' takes \(wanted), and what stands behind it is \(found.article)",
      keyPath: text)
  }
}

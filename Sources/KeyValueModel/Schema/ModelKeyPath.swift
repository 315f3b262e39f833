/// A key path resolved in the schema: keys joined by dots, from an object of one entity, with at most one collection
/// operator.
///
/// Immutable. It is a class only because it is copied with every change that is notified: a copy counts one reference
/// instead of six.
public final class ModelKeyPath: Hashable, Sendable {
  /// The path as it was written. Events and responses name it so.
  public let text: String
  /// The index of each key among the keys of the entity reached so far, up to the operator if there is one.
  public let keys: [Int]
  /// The operator and the key path after it; nil if there is none.
  public let operation: CollectionOperation?
  /// The type of its values.
  public let type: ValueType
  /// The keys that its value is read from.
  package let reads: KeyTree
  /// The reason why changes of its value cannot be observed; nil if they can. Such a path goes on behind a collection
  /// or a computed list, which can only be read.
  let unobservable: String?
  /// True if its operator reads members of a computed list: their changes are not tracked, so the path cannot be the
  /// formula of a computed key.
  let isBehindComputedList: Bool

  /// The maximum number of keys in a path.
  public static let maximumLength = 32

  init(
    text: String, keys: [Int], operation: CollectionOperation?, type: ValueType, reads: KeyTree,
    unobservable: String?, isBehindComputedList: Bool = false
  ) {
    self.text = text
    self.keys = keys
    self.operation = operation
    self.type = type
    self.reads = reads
    self.unobservable = unobservable
    self.isBehindComputedList = isBehindComputedList
  }

  /// The keys that it names, including the keys after its operator.
  package var named: KeyTree { KeyTree(path: keys + (operation?.memberKeys ?? [])) }

  /// Returns true if both are written alike and name the same keys.
  public static func == (left: ModelKeyPath, right: ModelKeyPath) -> Bool {
    left === right || left.text == right.text && left.keys == right.keys && left.operation == right.operation
  }

  /// Hashes the text and the keys, which equality compares.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(text)
    hasher.combine(keys)
  }
}

extension Schema {
  /// Resolves a key path from objects of `entity`. The schema alone decides which names are valid: behind a to-one to a
  /// parent, a key that only a subclass has is undefined.
  ///
  /// Throws `malformed-key-path`, `undefined-key`, `not-a-collection` for an operator that does not follow a
  /// collection, and `invalid-value` for an operator that cannot take the members' values.
  public func resolve(_ text: String, from entity: Entity) throws(ModelError) -> ModelKeyPath {
    if let index = entity.indexOfKey(text), index < entity.keyPaths.count, let path = entity.keyPaths[index] {
      return path
    }
    return try KeyPathResolution(schema: self, text: text, entity: entity).resolve()
  }

  /// Resolves a key path for observing: as `resolve`, but throws `unobservable-key-path` for a path whose changes
  /// cannot be observed, such as one that goes on behind a collection without an operator.
  public func resolveObservable(_ text: String, from entity: Entity) throws(ModelError) -> ModelKeyPath {
    let path = try resolve(text, from: entity)
    if let reason = path.unobservable { throw ModelError(.unobservableKeyPath, reason, keyPath: text) }
    return path
  }

  /// The type of a key's value; nil for a computed key that is not resolved yet.
  public func type(of key: Key) -> ValueType? {
    key.valueType ?? (isLenient ? .attribute(.json) : nil)
  }

  /// The entity that a key leads to, through a single object or the members of a collection; nil if its values are not
  /// references.
  package func destination(of key: Key) -> Entity? {
    guard case .object(let name)? = type(of: key)?.innermost else { return nil }
    return entity(named: name)
  }

  /// Returns true if the value of a resolved path is a reference.
  public func leadsToObject(_ path: ModelKeyPath) -> Bool {
    if case .object = path.type { return true }
    return false
  }
}

/// An operator of a key path, with the key path after it.
public struct CollectionOperation: Hashable, Sendable {
  /// The operator.
  public let function: CollectionOperator
  /// The key path, as indexes, whose value is taken of each member; empty for the member itself, and for `@count`.
  public let memberKeys: [Int]
  /// True if the members' values are dates, which compare by instant.
  let isOverDates: Bool
  /// True if the members' values are numbers that may have fractions: then no result is an integer.
  let isOverNumbers: Bool
}

/// The collection operators of key paths (KVC guide, "Using Collection Operators").
public enum CollectionOperator: String, Hashable, Sendable, CaseIterable {
  /// The number of members.
  case count = "@count"
  /// The sum of the members' values, in decimal; nulls count as 0.
  case sum = "@sum"
  /// The sum divided by the number of members; null if there are no members.
  case average = "@avg"
  /// The smallest of the members' values, nulls left out; null if there are none.
  case minimum = "@min"
  /// The largest of the members' values, nulls left out; null if there are none.
  case maximum = "@max"
  /// The members' values in order, nulls left out.
  case unionOfObjects = "@unionOfObjects"
  /// The members' values in order, nulls left out, each value once.
  case distinctUnionOfObjects = "@distinctUnionOfObjects"
  /// The elements of the members' lists in order, nulls left out.
  case unionOfArrays = "@unionOfArrays"
  /// The elements of the members' lists in order, nulls left out, each value once.
  case distinctUnionOfArrays = "@distinctUnionOfArrays"
}

/// Resolves the text of one key path, key by key.
private struct KeyPathResolution {
  let schema: Schema
  let text: String
  let entity: Entity

  /// The state of the resolution: the keys so far, and the type of the value that they lead to.
  private struct Walk {
    var keys: [Int] = []
    var type: ValueType
    /// The name of the first collection behind which the path goes on; nil if there is none.
    var crossed: String?
    /// True if the last key is computed and its type is not known yet, which occurs only while a schema is compiled.
    var isUnknown = false
    var lastName = ""
    /// True if the last key is a computed list. Such a list may hold references, but a path cannot go on behind it.
    var endsInComputedList = false
  }

  /// Returns the path, or throws the mistake in it.
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
        "'\(function.rawValue)' in '\(text)' follows '\(left.lastName)', which is not a collection", keyPath: text)
    }
    return try path(left, function, element, components[(position + 1)...])
  }

  private static func crossing(_ collection: String) -> String {
    "the path goes on behind the collection '\(collection)': it can be read, but observed only with an operator"
  }

  private static func following(_ computedList: String) -> String {
    "the path reads members of the computed list '\(computedList)': it can be read, but not observed"
  }

  // MARK: Keys

  /// Resolves the keys from a value of a type on. `name` is the key that holds the value, if it is a list.
  private func walk(
    _ components: ArraySlice<KeyPathGrammar.Component>, from start: ValueType, named name: String = ""
  ) throws(ModelError) -> Walk {
    var walk = Walk(type: start, lastName: name)
    for component in components {
      guard case .object(let name) = walk.type.innermost, let owner = schema.entity(named: name) else {
        throw ModelError(
          .undefinedKey, "'\(component.name)' in '\(text)' follows a value that has no keys", keyPath: text)
      }
      guard let index = owner.indexOfKey(component.name) else {
        throw ModelError(.undefinedKey, owner.undefined(component.name), keyPath: text)
      }
      guard let type = schema.type(of: owner.keys[index]) else {
        throw ModelError(.undefinedKey, "'\(component.name)' of \(owner.name) cannot be resolved", keyPath: text)
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
    ModelError(.undefinedKey, "'\(name)' in '\(text)' follows a computed list, which has no keys", keyPath: text)
  }

  // MARK: Operators

  private func path(
    _ left: Walk, _ function: CollectionOperator, _ element: ValueType,
    _ components: ArraySlice<KeyPathGrammar.Component>
  ) throws(ModelError) -> ModelKeyPath {
    let right = try memberWalk(components, element, left.lastName)
    let isBehindComputedList = !right.keys.isEmpty && left.endsInComputedList
    // The values are checked only once their type is known.
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

  /// Resolves the key path after an operator. `self` is the member itself, as in the collections of Foundation, unless
  /// the members have a key of this name.
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
          .notACollection, "'\(function.rawValue)' in '\(text)' needs a collection in each member", keyPath: text)
      }
      return .list(element)
    }
  }

  private func refusal(_ function: CollectionOperator, _ wanted: String, _ found: ValueType) -> ModelError {
    ModelError(
      .invalidValue,
      "'\(function.rawValue)' in '\(text)' takes \(wanted), but is applied to \(found.article)",
      keyPath: text)
  }
}

/// The syntax of key paths: `key ('.' key)*`, with at most one collection operator, which is followed by a key path
/// unless it is `@count` (KVC guide, "Using Collection Operators").
enum KeyPathGrammar {
  /// A key, or an operator with its `@`.
  struct Component {
    let name: String
    /// The operator; nil for a key.
    let function: CollectionOperator?
  }

  /// Returns the components of `text`, or throws `malformed-key-path`.
  static func components(of text: String) throws(ModelError) -> [Component] {
    func malformed(_ detail: String) -> ModelError { ModelError(.malformedKeyPath, detail, keyPath: text) }

    guard !text.isEmpty else { throw malformed("a key path has at least one key") }
    let names = text.split(separator: ".", omittingEmptySubsequences: false)
    guard names.count <= ModelKeyPath.maximumLength else {
      throw malformed("a key path has at most \(ModelKeyPath.maximumLength) keys")
    }
    var components: [Component] = []
    for name in names {
      if name.hasPrefix("@") {
        guard let function = CollectionOperator(rawValue: String(name)) else {
          throw malformed("'\(name)' is not a collection operator")
        }
        guard components.allSatisfy({ $0.function == nil }) else { throw malformed("'\(text)' has two operators") }
        components.append(Component(name: String(name), function: function))
      } else {
        guard isKey(name) else { throw malformed("'\(name)' in '\(text)' is not a key") }
        components.append(Component(name: String(name), function: nil))
      }
    }
    try checkOperator(components, malformed)
    return components
  }

  private static func checkOperator(
    _ components: [Component], _ malformed: (String) -> ModelError
  ) throws(ModelError) {
    guard let position = components.firstIndex(where: { $0.function != nil }) else { return }
    let name = components[position].name
    guard position > 0 else { throw malformed("'\(name)' has no collection before it") }
    let isLast = position == components.count - 1
    if name == "@count", !isLast { throw malformed("nothing may follow '@count'") }
    if name != "@count", isLast { throw malformed("'\(name)' needs a key path after it") }
  }

  /// Returns true if `name` matches `[A-Za-z_][A-Za-z0-9_]*`.
  static func isKey(_ name: some StringProtocol) -> Bool {
    guard let first = name.utf8.first, first.isASCIILetter || first == UInt8(ascii: "_") else { return false }
    return name.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "_") }
  }
}

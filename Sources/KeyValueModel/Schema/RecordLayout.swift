/// Where an object's keys are, what they are called in JSON and what setting them asks, without a reference in it that
/// threads would have to count: reading and setting are the hottest paths there are.
final class RecordLayout: Sendable {
  /// One key.
  struct Column: Sendable {
    /// Where the value stands in a record; -1 for computed keys.
    let storage: Int32
    /// Where the path of a computed key begins and ends in `paths`; empty where it has an operator or an expression.
    let pathStart: Int32
    let pathEnd: Int32
    /// Where `,"name":` begins and ends in `names`.
    let nameStart: Int32
    let nameEnd: Int32
    /// Whether it may be null.
    let isOptional: Bool
    /// When setting it notifies.
    let notifying: Key.Notifying
    /// The type, where it is an attribute.
    let type: AttributeType?
    /// Whether it is an attribute that takes every value of its type.
    let isUnconstrained: Bool
    /// Whether computed keys of other objects read it.
    let isReadFromAfar: Bool

    /// The value as the attribute keeps it, where setting the key to it asks no more than whether it may be null: it is
    /// of the type, or a whole number for one that keeps doubles. Nil says nothing.
    func plainForm(of value: Value) -> Value? {
      guard isUnconstrained else { return nil }
      return switch (type, value) {
      case (.string, .string), (.integer, .integer), (.number, .number), (.boolean, .bool): value
      case (.number, .integer(let integer)): .number(Double(integer))
      case (.json, .null), (.json, .bool), (.json, .integer), (.json, .number), (.json, .string): value
      default: nil
      }
    }
  }

  let columns: [Column]
  let paths: [Int]
  let names: [UInt8]

  /// The keys of an entity, of which those with the indexes in `farKeys` are read by computed keys of other objects.
  init(keys: [Key], farKeys: Set<Int>) {
    var columns: [Column] = []
    var paths: [Int] = []
    var names: [UInt8] = []
    for (index, key) in keys.enumerated() {
      let (pathStart, nameStart) = (paths.count, names.count)
      if case .computed(let computed) = key.kind, case .path(let path)? = computed.formula, path.operation == nil,
        computed.conversion == nil
      {
        paths += path.keys
      }
      names += Array(",\"\(key.name)\":".utf8)
      columns.append(
        Column(
          storage: Int32(key.storage ?? -1), pathStart: Int32(pathStart), pathEnd: Int32(paths.count),
          nameStart: Int32(nameStart), nameEnd: Int32(names.count), isOptional: key.isOptional,
          notifying: key.notifying, type: key.attribute?.type, isUnconstrained: key.attribute?.isUnconstrained ?? false,
          isReadFromAfar: farKeys.contains(index)))
    }
    self.columns = columns
    self.paths = paths
    self.names = names
  }

  /// The path of a computed key.
  func path(of column: Column) -> ArraySlice<Int> { paths[Int(column.pathStart)..<Int(column.pathEnd)] }
}

extension Key {
  /// What it holds, where it is an attribute.
  var attribute: Attribute? {
    if case .attribute(let attribute) = kind { return attribute }
    return nil
  }
}

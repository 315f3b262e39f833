import CEL

extension Value {
  /// An expression's value in the form that JSON has for it (CEL language definition, JSON Data Conversion): timestamps
  /// by RFC 3339, objects by their references. Nil where there is none, as for bytes, an infinite double or a map whose
  /// keys are no strings, where it is too large, or where it does not have the declared type.
  init?(_ value: ExpressionValue, as declared: AttributeType?) {
    if let declared, declared != .json {
      switch value {
      case .list, .lazyList, .map: return nil
      default: break
      }
    }
    // A list may hold one list many times without taking room for it; as JSON it does.
    var room = Self.expressionValueNodes
    guard let plain = Self.plain(value, room: &room) else { return nil }
    guard let declared, !plain.isNull else {
      self = plain
      return
    }
    guard let converted = try? Attribute(type: declared).accepting(plain) else { return nil }
    self = converted
  }

  /// The most values that a value of an expression may consist of, where eight bytes of text count as one: as many as
  /// an evaluation may have steps.
  private static let expressionValueNodes = 1_000_000

  private static func plain(_ value: ExpressionValue, room: inout Int) -> Value? {
    room -= 1
    guard room >= 0 else { return nil }
    switch value {
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .integer(value)
    case .uint(let value): return Int64(exactly: value).map(Value.integer) ?? .number(Double(value))
    case .double(let value): return value.isFinite ? .number(value) : nil
    case .string(let text):
      room -= text.utf8.count / 8
      return .string(text)
    case .bytes: return nil
    case .timestamp(let timestamp): return .string(timestamp.description)
    case .duration(let duration): return .string(duration.description)
    case .type(let name): return .string(name)
    case .object(let object): return Reference(object.identity).map(Value.reference)
    case .list, .lazyList: return list(value, room: &room)
    case .map(let map): return object(map, room: &room)
    }
  }

  private static func list(_ value: ExpressionValue, room: inout Int) -> Value? {
    guard let list = value.asList else { return nil }
    var elements: [Value] = []
    guard list.count <= room else { return nil }
    elements.reserveCapacity(list.count)
    for index in 0..<list.count {
      guard let element = try? list.element(at: index), let plain = plain(element, room: &room) else { return nil }
      elements.append(plain)
    }
    return .array(elements)
  }

  private static func object(_ map: ExpressionMap, room: inout Int) -> Value? {
    var object = JSONObject()
    for (key, member) in zip(map.keys, map.values) {
      guard case .string(let name) = key, let plain = plain(member, room: &room) else { return nil }
      object[name] = plain
    }
    return .object(object)
  }
}

extension ExpressionValue {
  /// A value of JSON, as a key of type `json` has it in expressions.
  package init(json value: Value) {
    switch value {
    case .null: self = .null
    case .bool(let value): self = .bool(value)
    case .integer(let value): self = .int(value)
    case .number(let value), .rounded(let value): self = .double(value)
    case .string(let text): self = .string(text)
    case .reference(let reference): self = .string(reference.text)
    case .array(let elements): self = .list(elements.map { ExpressionValue(json: $0) })
    case .members(let list): self = .list(list.map { ExpressionValue(json: $0) })
    case .object(let object):
      let entries = object.members.map { (ExpressionValue.string($0.key), ExpressionValue(json: $0.value)) }
      self = (try? ExpressionMap(entries)).map(ExpressionValue.map) ?? .null
    }
  }
}

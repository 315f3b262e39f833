internal import KeyValueModel

/// Writes objects as the wire contract has them: `@ref`, `@revision`, and the keys, computed ones included.
struct ObjectEncoder {
  /// Which to-ones are written as the object that they name, and which of that object's in turn.
  struct Expansion {
    var children: [Int: Expansion] = [:]
  }

  let state: ModelState
  /// The keys to write; nil for all.
  var keys: Set<Int>?
  var expansion = Expansion()

  /// The object as JSON, or `null` where it is not there.
  func append(_ reference: Reference, to bytes: inout [UInt8]) {
    append(reference, expansion, keys, to: &bytes)
  }

  private func append(
    _ reference: Reference, _ expansion: Expansion, _ keys: Set<Int>?, to bytes: inout [UInt8]
  ) {
    guard let record = state.record(reference) else {
      bytes.append(contentsOf: "null".utf8)
      return
    }
    if keys == nil, expansion.children.isEmpty {
      state.appendJSON(of: reference, record, to: &bytes)
      return
    }
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(contentsOf: "\",\"@revision\":".utf8)
    bytes.appendDecimal(record.revision)
    for index in record.entity.keys.indices where keys?.contains(index) ?? true {
      bytes.append(UInt8(ascii: ","))
      bytes.append(UInt8(ascii: "\""))
      bytes.append(contentsOf: record.entity.keys[index].name.utf8)
      bytes.append(contentsOf: "\":".utf8)
      let value = state.value(of: record, reference, key: index)
      if case .reference(let target) = value, let child = expansion.children[index] {
        append(target, child, nil, to: &bytes)
      } else {
        value.appendJSON(to: &bytes)
      }
    }
    bytes.append(UInt8(ascii: "}"))
  }
}

extension ObjectEncoder {
  /// An encoder for what `?keys=` and `?expand=` ask of objects of an entity. Throws `undefined-key` and, for an
  /// expansion that is no to-one, `malformed-query`.
  init(state: ModelState, entity: Entity, target: Target) throws(Problem) {
    self.state = state
    if let names = target.list("keys") {
      var keys: Set<Int> = []
      for name in names {
        guard let index = entity.indexOfKey(name) else {
          throw Problem(.undefinedKey, "\(entity.name) has no key '\(name)'", keyPath: name)
        }
        keys.insert(index)
      }
      self.keys = keys
    }
    for text in target.list("expand") ?? [] {
      let path = try Problem.translating { () throws(ModelError) in try state.schema.resolve(text, from: entity) }
      guard state.schema.leadsToObject(path, from: entity) else {
        throw Problem(.malformedQuery, "expand: '\(text)' is no to-one relationship", keyPath: text)
      }
      expansion.add(path.keys[...])
    }
  }
}

extension ObjectEncoder.Expansion {
  fileprivate mutating func add(_ path: ArraySlice<Int>) {
    guard let first = path.first else { return }
    children[first, default: Self()].add(path.dropFirst())
  }
}

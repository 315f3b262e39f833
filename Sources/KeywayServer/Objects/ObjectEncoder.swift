import KeyValueModel

/// Encodes objects as in section 3 of the specification: `@ref`, `@revision`, and the keys, including computed ones.
struct ObjectEncoder {
  /// The relationships to write as the objects that they name, by key, with the relationships of those objects.
  fileprivate struct Expansion {
    var children: [Int: Expansion] = [:]
  }

  let state: MeteredState
  /// The reader that leaves out what the viewer may not read, or nil if everything may be read.
  private let guarded: GuardedReader<MeteredState>?
  private var viewer: Viewer? { guarded?.viewer }
  /// The keys to write, or nil for all.
  private var keys: Set<Int>?
  /// The key paths to write after the keys.
  private var paths: [ModelKeyPath] = []
  private var expansion = Expansion()
  /// The remaining budget of the response.
  private let budget: ReadingBudget

  /// Creates an encoder for all keys of objects, without expanding references.
  init(state: MeteredState, guarded: GuardedReader<MeteredState>? = nil, budget: ReadingBudget) {
    self.state = state
    self.guarded = guarded
    self.budget = budget
  }

  /// Appends an object as JSON, or `null` if it does not exist. Throws `too-many-objects`, `too-many-steps`,
  /// `too-many-bytes` and `overloaded`.
  func append(_ reference: Reference, to bytes: inout [UInt8]) throws(Problem) {
    try append(reference, expansion, keys, paths, to: &bytes)
  }

  private func append(
    _ reference: Reference, _ expansion: Expansion, _ keys: Set<Int>?, _ paths: [ModelKeyPath],
    to bytes: inout [UInt8]
  ) throws(Problem) {
    guard let record = state.record(reference) else {
      bytes.append(contentsOf: "null".utf8)
      return
    }
    if let guarded, guarded.record(reference) == nil {
      // An object that may not be read remains a reference.
      Value.reference(reference).appendJSON(to: &bytes)
      return
    }
    let hidden = viewer?.hiddenKeys(of: record.entity) ?? []
    if keys == nil, expansion.children.isEmpty, hidden.isEmpty {
      state.appendJSON(of: reference, record, to: &bytes, upTo: budget.byteLimit)
      return try budget.check(bytes)
    }
    bytes.append(contentsOf: "{\"@ref\":\"".utf8)
    bytes.append(contentsOf: reference.text.utf8)
    bytes.append(UInt8(ascii: "\""))
    // The revision would change with the keys that are left out.
    if hidden.isEmpty {
      bytes.append(contentsOf: ",\"@revision\":".utf8)
      bytes.appendDecimal(record.revision)
      record.lease?.appendMember(to: &bytes)
    }
    for index in record.entity.keys.indices where keys?.contains(index) ?? true && !hidden.contains(index) {
      bytes.append(UInt8(ascii: ","))
      bytes.append(UInt8(ascii: "\""))
      bytes.append(contentsOf: record.entity.keys[index].name.utf8)
      bytes.append(contentsOf: "\":".utf8)
      let value = state.value(of: record, reference, key: index)
      if let child = expansion.children[index] {
        try append(value, child, to: &bytes)
      } else {
        value.appendJSON(to: &bytes, upTo: budget.byteLimit)
      }
      try budget.check(bytes)
    }
    for path in paths {
      bytes.append(UInt8(ascii: ","))
      bytes.appendJSONString(path.text)
      bytes.append(UInt8(ascii: ":"))
      try budget.spend(on: path, of: reference, in: state)
      let value = guarded?.value(of: reference, at: path) ?? state.value(of: reference, at: path)
      value.appendJSON(to: &bytes, upTo: budget.byteLimit)
      try budget.check(bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }

  /// Appends the objects that the value of a relationship names.
  private func append(
    _ value: Value, _ expansion: Expansion, to bytes: inout [UInt8]
  ) throws(Problem) {
    if case .reference(let target) = value {
      try budget.spend(objects: 1)
      return try append(target, expansion, nil, [], to: &bytes)
    }
    guard let members = value.elements else { return value.appendJSON(to: &bytes) }
    budget.work.spend(members.count)
    bytes.append(UInt8(ascii: "["))
    for (index, member) in members.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      try append(member, expansion, to: &bytes)
    }
    bytes.append(UInt8(ascii: "]"))
  }
}

extension ObjectEncoder {
  /// Creates an encoder for the `?keys=` and `?expand=` of a request for objects of an entity. `?keys=` takes key paths
  /// only with `takesPaths`, since an `ETag` of the object alone does not cover their values. Throws the problem of an
  /// invalid key path, `malformed-query` for an expansion that is not a relationship, and `forbidden` for a key that
  /// the viewer may not read.
  init(
    state: MeteredState, guarded: GuardedReader<MeteredState>?, entity: Entity, target: Target,
    takesPaths: Bool = false,
    budget: ReadingBudget
  ) throws(Problem) {
    self.init(state: state, guarded: guarded, budget: budget)
    if let names = target.list("keys") {
      var keys: Set<Int> = []
      for name in names {
        guard takesPaths || entity.indexOfKey(name) != nil else {
          throw Problem(.undefinedKey, entity.undefined(name), keyPath: name)
        }
        let path = try Problem.translating { () throws(ModelError) in
          try state.state.schema.resolve(name, from: entity)
        }
        if let viewer { try Problem.translating(try viewer.check(path, from: entity, in: state.state.schema)) }
        if let index = entity.indexOfKey(name) {
          keys.insert(index)
        } else if !paths.contains(path) {
          paths.append(path)
          guard paths.count <= Query.maximumPaths else {
            throw Problem(.malformedQuery, "keys has more than \(Query.maximumPaths) paths of several keys")
          }
        }
      }
      self.keys = keys
    }
    for text in target.list("expand") ?? [] {
      let path = try Problem.translating { () throws(ModelError) in try state.state.schema.resolve(text, from: entity) }
      guard path.operation == nil, path.type.namesObjects else {
        throw Problem(.malformedQuery, "expand: '\(text)' is not a relationship", keyPath: text)
      }
      if let viewer { try Problem.translating(try viewer.check(path, from: entity, in: state.state.schema)) }
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

extension ValueType {
  /// True if the values are references, or lists of references.
  fileprivate var namesObjects: Bool {
    switch self {
    case .object: true
    case .list(let element): element.namesObjects
    case .attribute: false
    }
  }
}

/// The numbers of rows in responses and events.
struct QueryCounts {
  /// The number of rows in the window. For a fetch, the number of all rows.
  let count: Int
  /// The number of all matching rows.
  let total: Int
  /// The number of objects for which the filter failed.
  let failed: Int

  /// Appends `,"count":…,"total":…`, and `,"failed":…` if that is not 0.
  func append(to bytes: inout [UInt8]) {
    bytes.append(contentsOf: ",\"count\":\(count),\"total\":\(total)".utf8)
    if failed > 0 { bytes.append(contentsOf: ",\"failed\":\(failed)".utf8) }
  }
}

// MARK: - Queries

extension QueryResult {
  /// Appends `,"sections":[…]`: the rows of each section in the window, with the aggregates of all its rows. For a
  /// query without sections, appends `,"aggregates":{…}`, the aggregates of all rows. Appends nothing if the query has
  /// neither.
  func appendSummary(to bytes: inout [UInt8]) {
    query.appendSummary(sections: windowSections, aggregates: aggregates, to: &bytes)
  }
}

extension Query {
  /// Appends `,"sections":[…]` for a query with sections. Otherwise appends `,"aggregates":{…}` if it has aggregates.
  func appendSummary(sections: [QueryResult.WindowSection]?, aggregates values: [Value], to bytes: inout [UInt8]) {
    guard let sections else { return appendAggregates(values, to: &bytes) }
    bytes.append(contentsOf: ",\"sections\":[".utf8)
    for (index, section) in sections.enumerated() {
      bytes.append(contentsOf: index > 0 ? ",{\"name\":".utf8 : "{\"name\":".utf8)
      section.name.appendJSON(to: &bytes)
      bytes.append(contentsOf: ",\"count\":\(section.count)".utf8)
      appendAggregates(section.aggregates, to: &bytes)
      bytes.append(UInt8(ascii: "}"))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  /// Appends `,"aggregates":{…}`, with the text of each as its name, or nothing if the query has none.
  private func appendAggregates(_ values: [Value], to bytes: inout [UInt8]) {
    guard !aggregates.isEmpty else { return }
    bytes.append(contentsOf: ",\"aggregates\":{".utf8)
    for (index, (aggregate, value)) in zip(aggregates, values).enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.appendJSONString(aggregate.text)
      bytes.append(UInt8(ascii: ":"))
      value.appendJSON(to: &bytes)
    }
    bytes.append(UInt8(ascii: "}"))
  }
}

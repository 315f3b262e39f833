/// The application of a JSON patch to one document. After a failure the document must not be used.
struct JSONPatchApplication {
  /// The document after the operations applied so far.
  private(set) var document: Value
  /// The steps that the operations applied so far have taken.
  private(set) var steps = 0
  private var operationIndex = -1
  private var nodes: Int
  private var bytes: Int
  private var addedBytes = 0
  private let limits: JSONPatchLimits

  /// A change at a location.
  private enum Change {
    case add(Value)
    case replace(Value)
    case remove

    /// The new value of the location; nil if it is removed.
    var value: Value? {
      switch self {
      case .add(let value), .replace(let value): value
      case .remove: nil
      }
    }
  }

  init(_ document: Value, limits: JSONPatchLimits) {
    self.document = document
    self.limits = limits
    nodes = document.extent.nodes
    bytes = document.textBytes
    // The first change copies the storage that the document shares.
    steps = TransactionBudget.steps(of: nodes)
  }

  /// Applies the next operation.
  mutating func apply(_ operation: JSONPatch.Operation) throws(JSONPatchError) {
    operationIndex += 1
    try spend(operation.form.path.tokens.count + 1)
    switch operation {
    case .add(let path, let value):
      try admit(value, at: path, replacing: replaced(at: path))
      try change(path, .add(value))
    case .remove(let path):
      bytes -= try value(at: path).textBytes
      try change(path, .remove)
    case .replace(let path, let value):
      try admit(value, at: path, replacing: try self.value(at: path).textBytes)
      try change(path, .replace(value))
    case .move(let source, let path):
      let value = try self.value(at: source)
      guard !source.isSame(as: path) else { return }
      // Moving adds no values, but the moved values may lie deeper than before.
      if path.tokens.count > source.tokens.count {
        let extent = value.extent
        try spend(extent.nodes)
        try admit(depth: extent.depth, at: path)
      }
      try change(source, .remove)
      bytes -= replaced(at: path)
      try change(path, .add(value))
    case .copy(let source, let path):
      try admit(try self.value(at: source), at: path, replacing: replaced(at: path))
      try change(path, .add(try self.value(at: source)))
    case .test(let path, let expected):
      try spend(expected.extent.nodes)
      guard try value(at: path).isSameJSON(as: expected) else {
        throw error(.testFailed, "the value at the location is different")
      }
    }
  }

  private func error(_ kind: JSONPatchError.Kind, _ message: String) -> JSONPatchError {
    JSONPatchError(kind: kind, operationIndex: operationIndex, message: message)
  }

  // MARK: Limits

  private mutating func spend(_ count: Int) throws(JSONPatchError) {
    steps += count
    guard steps <= limits.steps else { throw error(.tooManySteps, "the patch takes too many steps") }
  }

  /// Counts a value against the limits before it replaces `old` bytes at a location.
  private mutating func admit(
    _ value: Value, at path: JSONPointer, replacing old: Int
  ) throws(JSONPatchError) {
    let extent = value.extent
    try spend(extent.nodes)
    try admit(depth: extent.depth, at: path)
    nodes += extent.nodes
    guard nodes <= limits.nodes else {
      throw error(.tooLarge, "the document becomes larger than \(limits.nodes) values")
    }
    let new = value.textBytes
    addedBytes += new
    bytes += new - old
    guard bytes <= limits.documentBytes || new <= old else {
      throw error(.tooManyBytes, "the object becomes larger than allowed")
    }
    guard addedBytes <= limits.addedBytes else { throw error(.tooManyBytes, "the transaction writes too many bytes") }
  }

  /// The number of bytes that an `add` replaces: those of an existing member of an object, or of the whole document.
  private func replaced(at path: JSONPointer) -> Int {
    guard let name = path.tokens.last else { return document.textBytes }
    guard case .object(let object)? = try? value(at: path.tokens.dropLast()) else { return 0 }
    return object[name]?.textBytes ?? 0
  }

  private func admit(depth: Int, at path: JSONPointer) throws(JSONPatchError) {
    guard path.tokens.count + depth <= limits.depth else {
      throw error(.tooLarge, "the document becomes nested deeper than \(limits.depth) levels")
    }
  }

  // MARK: Looking

  private func value(at path: JSONPointer) throws(JSONPatchError) -> Value { try value(at: path.tokens[...]) }

  private func value(at tokens: ArraySlice<String>) throws(JSONPatchError) -> Value {
    var value = document
    for token in tokens {
      if case .object(let object) = value {
        guard let member = object[token] else { throw missing(token) }
        value = member
      } else if let elements = value.elements {
        value = elements[try place(token, in: elements, addingTo: false)]
      } else {
        throw missing(token)
      }
    }
    return value
  }

  private func missing(_ token: String) -> JSONPatchError {
    error(.missingLocation, "the path leads to '\(token)', which does not exist")
  }

  /// The index that a token names in an array. An addition may also name the index after the last element.
  private func place(
    _ token: String, in elements: [Value], addingTo isAddition: Bool
  ) throws(JSONPatchError) -> Int {
    switch JSONPointer.index(token) {
    case .place(let place) where place < elements.count || (isAddition && place == elements.count): return place
    case .end where isAddition: return elements.count
    case .place, .end, .beyond: throw missing(token)
    case .invalid: throw error(.invalidIndex, "'\(token)' is not an index of an array")
    }
  }

  // MARK: Changing

  private mutating func change(_ path: JSONPointer, _ change: Change) throws(JSONPatchError) {
    var document = Value.null
    swap(&document, &self.document)
    try self.change(&document, path.tokens[...], change)
    self.document = document
  }

  private mutating func change(
    _ value: inout Value, _ tokens: ArraySlice<String>, _ change: Change
  ) throws(JSONPatchError) {
    guard let token = tokens.first else {
      value = change.value ?? .null
      return
    }
    if var object = value.takeObject() {
      try self.change(&object, token, tokens.dropFirst(), change)
      value = .object(object)
    } else if var elements = value.takeElements() {
      try self.change(&elements, token, tokens.dropFirst(), change)
      value = .array(elements)
    } else {
      throw missing(token)
    }
  }

  private mutating func change(
    _ object: inout JSONObject, _ token: String, _ rest: ArraySlice<String>, _ change: Change
  ) throws(JSONPatchError) {
    if rest.isEmpty, case .add(let value) = change {
      object[token] = value
      return
    }
    if rest.isEmpty, case .remove = change {
      guard object[token] != nil else { throw missing(token) }
      // The members after it move, and so do their entries in the hash table.
      try spend(object.members.count / 4)
      object[token] = nil
      return
    }
    let exists = try object.members.change(token) { value throws(JSONPatchError) in
      try self.change(&value, rest, change)
    }
    guard exists else { throw missing(token) }
  }

  private mutating func change(
    _ elements: inout [Value], _ token: String, _ rest: ArraySlice<String>, _ change: Change
  ) throws(JSONPatchError) {
    switch change {
    case .add(let value) where rest.isEmpty:
      let place = try place(token, in: elements, addingTo: true)
      try spend(TransactionBudget.steps(of: elements.count - place))
      elements.insert(value, at: place)
    case .remove where rest.isEmpty:
      let place = try place(token, in: elements, addingTo: false)
      try spend(TransactionBudget.steps(of: elements.count - place))
      elements.remove(at: place)
    default:
      let place = try place(token, in: elements, addingTo: false)
      try self.change(&elements[place], rest, change)
    }
  }
}

/// The limits of the application of a JSON patch.
struct JSONPatchLimits {
  /// The maximum number of values, at any depth, of the document and of everything that is added and copied to it.
  var nodes = 1_000_000
  /// The maximum depth in the document that an added value may reach, in levels.
  var depth = 64
  /// The maximum size of the document in bytes, as `Value.textBytes` counts them. A document that is larger already may
  /// still shrink.
  var documentBytes = Int.max
  /// The maximum number of bytes of everything that is added and copied.
  var addedBytes = Int.max
  /// The maximum number of steps; see `TransactionLimits.steps`.
  var steps = Int.max
}

extension Value {
  // These are calls that are not inlined: the optimizer would otherwise keep a reference to the value taken out, and
  // each change would copy all of it.

  /// Takes the object out, so that it can be changed in place, and leaves null. Returns nil if the value is not an
  /// object.
  @inline(never)
  fileprivate mutating func takeObject() -> JSONObject? {
    guard case .object(let object) = self else { return nil }
    self = .null
    return object
  }

  /// Takes the elements of an array or of a collection out, so that they can be changed in place, and leaves null.
  /// Returns nil if the value is neither.
  @inline(never)
  fileprivate mutating func takeElements() -> [Value]? {
    guard let elements else { return nil }
    self = .null
    return elements
  }
}

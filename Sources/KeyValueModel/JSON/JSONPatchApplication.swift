/// The application of a JSON patch to one document. After a failure the document is not to be used.
struct JSONPatchApplication {
  /// The document as the operations so far have made it.
  private(set) var document: Value
  /// What the operations so far have taken.
  private(set) var steps = 0
  private var operationIndex = -1
  private var nodes: Int
  private var bytes: Int
  private var addedBytes = 0
  private let limits: JSONPatchLimits

  /// What is done at a location.
  private enum Change {
    case add(Value)
    case replace(Value)
    case remove

    /// What the location holds afterwards, nil where it is gone.
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
    // The first change copies what the document shares.
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
      // The values move and do not become more, but they may come to lie deeper.
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
        throw error(.testFailed, "the value at the location is another one")
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

  /// Counts a value that is to take the place of so many bytes, before it is made.
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
      throw error(.tooManyBytes, "the object becomes larger than it may")
    }
    guard addedBytes <= limits.addedBytes else { throw error(.tooManyBytes, "the transaction writes too many bytes") }
  }

  /// How many bytes an `add` takes away: a member of an object that is there, or the document.
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
    error(.missingLocation, "there is no '\(token)' where the path leads")
  }

  /// The place that a token names in an array; also the one behind the last, where something is to be added.
  private func place(
    _ token: String, in elements: [Value], addingTo isAddition: Bool
  ) throws(JSONPatchError) -> Int {
    switch JSONPointer.index(token) {
    case .place(let place) where place < elements.count || (isAddition && place == elements.count): return place
    case .end where isAddition: return elements.count
    case .place, .end, .beyond: throw missing(token)
    case .invalid: throw error(.invalidIndex, "'\(token)' is no index of an array")
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
      // The members behind it move, and so do their places in the table.
      try spend(object.members.count / 4)
      object[token] = nil
      return
    }
    let isThere = try object.members.change(token) { value throws(JSONPatchError) in
      try self.change(&value, rest, change)
    }
    guard isThere else { throw missing(token) }
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

/// What the application of a JSON patch may make and take.
struct JSONPatchLimits {
  /// The most values, at any depth, of the document and of all that is added and copied to it.
  var nodes = 1_000_000
  /// The most levels of what is added.
  var depth = 64
  /// The most bytes of the document, as `Value.textBytes` counts them. One that is larger already may still shrink.
  var documentBytes = Int.max
  /// The most bytes of all that is added and copied.
  var addedBytes = Int.max
  /// The most steps; see `TransactionLimits.steps`.
  var steps = Int.max
}

extension Value {
  // Calls, because the optimizer would otherwise hold on to what is taken out, and each change would copy all of it.

  /// Takes the object out, so that it can be changed in place; nil where this is none.
  @inline(never)
  fileprivate mutating func takeObject() -> JSONObject? {
    guard case .object(let object) = self else { return nil }
    self = .null
    return object
  }

  /// Takes the elements of an array or of members out, so that they can be changed in place; nil where this is neither.
  @inline(never)
  fileprivate mutating func takeElements() -> [Value]? {
    guard let elements else { return nil }
    self = .null
    return elements
  }
}

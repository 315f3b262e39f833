internal import KeyValueModel
internal import KeyValueObserving
internal import OrderedCollections

/// What a client binds a cell to.
struct CellBinding: Hashable, Sendable {
  /// The object, nil for a cell that waits to be used again.
  var object: Reference?
  /// The key paths as registered; nil for the object's display keys.
  var keyPaths: [String]?
  /// What is told.
  var options: ObservingOptions = [.new, .initial]
  /// Given back with every change.
  var context: EchoedText?
  /// Whether the cell is on screen.
  var isVisible = true

  /// Reads a body of `PUT …/cells/{c}`.
  init(_ body: Value) throws(Problem) {
    try apply(body)
  }

  /// Changes what a body of `PATCH …/cells/{c}` names. Setting another object keeps everything else.
  mutating func apply(_ body: Value) throws(Problem) {
    guard case .object(let members) = body else {
      throw Problem(.invalidValue, "a cell's binding is a JSON object with object, keyPaths, options, visible, context")
    }
    for name in members.members.keys {
      let value = members[name] ?? .null
      switch name {
      case "object": object = try Self.reference(value)
      case "keyPaths": keyPaths = value.isNull ? nil : try Self.strings(value, name)
      case "options": options = value.isNull ? [.new, .initial] : try Self.options(value)
      case "context":
        context = try Self.string(value, name).map { text throws(Problem) in
          try EchoedText(text, mistake: .invalidValue)
        }
      case "visible":
        guard case .bool(let flag) = value else { throw Problem(.invalidValue, "visible is true or false") }
        isVisible = flag
      case "entity", "filter", "sort", "section", "limit":
        throw Problem(.invalidValue, "a cell shows one object; this version of Keyway has no live queries")
      default:
        throw Problem(
          .invalidValue, "'\(name)' is no member of a binding; it has object, keyPaths, options, visible, context")
      }
    }
    if keyPaths?.isEmpty == true { throw Problem(.invalidValue, "keyPaths wants at least one key path") }
  }

  /// The binding as JSON, with everything that was left out filled in.
  var described: JSONObject {
    [
      "object": object.map(Value.reference) ?? .null,
      "keyPaths": keyPaths.map { .array($0.map(Value.string)) } ?? .null,
      "options": .array(options.optionNames.map(Value.string)),
      "visible": .bool(isVisible),
      "context": context.map { .string($0.text) } ?? .null,
    ]
  }

  private static func reference(_ value: Value) throws(Problem) -> Reference? {
    if value.isNull { return nil }
    guard case .string(let text) = value, let reference = Reference(text) else {
      throw Problem(.invalidValue, "object wants a reference such as \"Account/1\", or null")
    }
    return reference
  }

  private static func strings(_ value: Value, _ name: String) throws(Problem) -> [String] {
    guard case .array(let elements) = value else { throw Problem(.invalidValue, "\(name) wants an array of strings") }
    var strings: [String] = []
    for element in elements {
      guard case .string(let text) = element else { throw Problem(.invalidValue, "\(name) wants an array of strings") }
      strings.append(text)
    }
    return strings
  }

  private static func string(_ value: Value, _ name: String) throws(Problem) -> String? {
    switch value {
    case .null: return nil
    case .string(let text): return text
    default: throw Problem(.invalidValue, "\(name) wants a string")
    }
  }

  private static func options(_ value: Value) throws(Problem) -> ObservingOptions {
    try ObservingOptions(names: strings(value, "options"), mistake: .invalidValue)
  }
}

extension ObservingOptions {
  /// The options of these names; one that is none is thrown as `mistake`.
  init(names: [String], mistake: ProblemCode) throws(Problem) {
    var options: ObservingOptions = []
    if names != ["none"] {
      for name in names {
        guard let option = ObservingOptions(name: name) else {
          throw Problem(mistake, "'\(name)' is no option; there is new, old, initial, prior, or none alone")
        }
        options.insert(option)
      }
    }
    self = options
  }
}

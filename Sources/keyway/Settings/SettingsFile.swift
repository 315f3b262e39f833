import KeyValueModel
import Yams

/// The configuration file: YAML, nested or with dotted names. Every entry has its line.
struct SettingsFile {
  /// One setting of the file.
  struct Entry: Hashable, Sendable {
    /// The dotted name.
    var name: String
    /// The value with its type.
    var value: Setting.Value
    /// The file and the line.
    var origin: SettingsError.Origin
  }

  /// The entries in order. Their names and values are not checked here.
  private(set) var entries: [Entry] = []
  private let name: String

  /// Reads a file from disk.
  init(path: String) throws(SettingsError) {
    let text: String
    do throws(TextFile.Unreadable) {
      text = try TextFile.text(of: path)
    } catch {
      throw SettingsError(origin: .file(path, line: 0), reason: error.reason)
    }
    try self.init(name: path, text: text)
  }

  /// Reads the text of a file. Messages call it `name`.
  init(name: String, text: String) throws(SettingsError) {
    self.name = name
    let root: Node?
    do throws(YAMLMistake) {
      root = try YAMLDocument.root(of: text)
    } catch {
      throw SettingsError(origin: .file(name, line: error.line, column: error.column), reason: error.message)
    }
    // An empty file, or one of comments only, sets nothing.
    guard let root, !Self.isNull(root) else { return }
    guard case .mapping(let mapping) = root else {
      throw error(at: root, "the file must be a mapping of names to values")
    }
    try read(mapping, prefix: "")
  }

  private mutating func read(_ mapping: Node.Mapping, prefix: String) throws(SettingsError) {
    for (key, value) in mapping {
      guard case .scalar(let scalar) = key else { throw error(at: key, "a name must be a text") }
      let full = prefix + scalar.string
      if case .mapping(let inner) = value, Settings.setting(named: full) == nil {
        // An unknown group is reported as a whole, not by its first entry.
        guard !Settings.names(inGroup: full).isEmpty else { throw error(at: key, SettingsError.unknown(full)) }
        try read(inner, prefix: full + ".")
        continue
      }
      if let first = entries.first(where: { $0.name == full }), case .file(_, let line, _) = first.origin {
        throw error(at: key, "\(full) is already set on line \(line)")
      }
      entries.append(Entry(name: full, value: Self.value(value), origin: origin(of: key)))
    }
  }

  private func origin(of node: Node) -> SettingsError.Origin { .file(name, line: node.mark?.line ?? 0) }

  private func error(at node: Node, _ reason: String) -> SettingsError {
    SettingsError(origin: origin(of: node), reason: reason)
  }

  private static func value(_ node: Node) -> Setting.Value {
    switch node {
    case .scalar(let scalar):
      // An unquoted 8080 is a number, a quoted one a text.
      switch YAMLScalar(scalar) {
      case .null: return .other("empty")
      case .integer(let integer): return .integer(Int(integer))
      case .text: return .text(scalar.string)
      case .bool(let isOn): return .other(isOn ? "true" : "false")
      case .number, .refused: return .other(scalar.string)
      }
    case .sequence(let nodes):
      let texts = nodes.compactMap { node -> String? in
        guard case .text(let text) = value(node) else { return nil }
        return text
      }
      return texts.count == nodes.count ? .list(texts) : .other("a list with an element that is not a text")
    case .mapping: return .other("a mapping")
    case .alias: return .other("an alias")
    }
  }

  private static func isNull(_ node: Node) -> Bool {
    if case .scalar(let scalar) = node { YAMLScalar(scalar) == .null } else { false }
  }
}

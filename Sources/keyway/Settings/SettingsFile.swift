import Foundation
import Yams

/// The configuration file: YAML, nested or with dotted names, every entry with its line.
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

  /// The entries in order. Whether their names and values are right is not looked at here.
  private(set) var entries: [Entry] = []
  private let name: String

  /// Reads a file from disk.
  init(path: String) throws(SettingsError) {
    guard let data = FileManager.default.contents(atPath: path), let text = String(data: data, encoding: .utf8) else {
      throw SettingsError(origin: .file(path, line: 0), reason: "there is no such file, or it is no UTF-8 text")
    }
    try self.init(name: path, text: text)
  }

  /// Reads the text of a file that is called `name` in messages.
  init(name: String, text: String) throws(SettingsError) {
    self.name = name
    let root: Node?
    do {
      root = try compose(yaml: text)
    } catch {
      throw Self.syntaxError(error, name: name)
    }
    // An empty file, or one of comments only, sets nothing.
    guard let root, !Self.isNull(root) else { return }
    guard case .mapping(let mapping) = root else { throw error(at: root, "the file is no mapping of names to values") }
    try read(mapping, prefix: "")
  }

  private mutating func read(_ mapping: Node.Mapping, prefix: String) throws(SettingsError) {
    for (key, value) in mapping {
      guard case .scalar(let scalar) = key else { throw error(at: key, "a name has to be a text") }
      let full = prefix + scalar.string
      if case .mapping(let inner) = value, Settings.setting(named: full) == nil {
        // An unknown group is named as a whole, rather than by its first entry.
        guard !Settings.names(inGroup: full).isEmpty else { throw error(at: key, SettingsError.unknown(full)) }
        try read(inner, prefix: full + ".")
        continue
      }
      if let first = entries.first(where: { $0.name == full }), case .file(_, let line) = first.origin {
        throw error(at: key, "\(full) is set already, on line \(line)")
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
      // A plain 8080 is a number, a quoted one a text.
      if isNull(node) { return .other("empty") }
      if node.tag == Tag(.int) { return node.int.map(Setting.Value.integer) ?? .other("a number that is too large") }
      if node.tag == Tag(.str) { return .text(scalar.string) }
      return .other(scalar.string)
    case .sequence(let nodes):
      let texts = nodes.compactMap { node -> String? in
        guard case .text(let text) = value(node) else { return nil }
        return text
      }
      return texts.count == nodes.count ? .list(texts) : .other("a list with something that is no text")
    case .mapping: return .other("a mapping")
    case .alias: return .other("an alias")
    }
  }

  private static func isNull(_ node: Node) -> Bool { node.tag == Tag(.null) }

  private static func syntaxError(_ error: any Error, name: String) -> SettingsError {
    switch error as? YamlError {
    case .scanner(_, let problem, let mark, _)?, .parser(_, let problem, let mark, _)?,
      .composer(_, let problem, let mark, _)?:
      SettingsError(origin: .file(name, line: mark.line), reason: "no YAML: \(problem)")
    case .duplicatedKeysInMapping(let names, let context)?:
      SettingsError(
        origin: .file(name, line: context.mark.line), reason: "\(names.joined(separator: ", ")) stands there twice")
    default:
      SettingsError(origin: .file(name, line: 0), reason: "no YAML: \(error)")
    }
  }
}

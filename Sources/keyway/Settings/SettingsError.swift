import Support

/// Settings that the server does not start with.
struct SettingsError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Where a value of the settings comes from.
  enum Origin: Hashable, Sendable, CustomStringConvertible {
    /// A line of the configuration file, and where it matters the column; line 0 is the file as a whole.
    case file(String, line: Int, column: Int? = nil)
    /// A variable of the environment.
    case environment(String)
    /// A flag of the command line, as it was written.
    case flag(String)

    /// How a message about it begins.
    var description: String {
      switch self {
      case .file(let name, line: 0, _): name
      case .file(let name, let line, let column): "\(name):\(line)" + (column.map { ":\($0)" } ?? "")
      case .environment(let name), .flag(let name): name
      }
    }
  }

  /// What has to be corrected.
  var origin: Origin
  /// What is wrong with it.
  var reason: String

  /// `keyway.yaml:12: port is 70000, not between 0 and 65535`.
  var description: String { "\(origin): \(reason)" }

  /// Returns the reason for a name that is not a setting: it suggests the setting that is spelled nearly so, or those
  /// of its group.
  static func unknown(_ name: String) -> String {
    let nearest = NearestName.of(name, among: Settings.all.map(\.name))
    let near = nearest.map { [$0] } ?? Settings.names(inGroup: name.prefix { $0 != "." })
    guard let last = near.last else { return "there is no setting \(name); keyway serve --print-config lists all" }
    let list = (near.count > 1 ? near.dropLast().joined(separator: ", ") + " or " : "") + last
    return "there is no setting \(name); did you mean \(list)?"
  }
}

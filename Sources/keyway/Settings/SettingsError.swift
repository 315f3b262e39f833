/// Settings that the server does not start with.
struct SettingsError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Where a value of the settings comes from.
  enum Origin: Hashable, Sendable, CustomStringConvertible {
    /// A line of the configuration file; line 0 is the file as a whole.
    case file(String, line: Int)
    /// A variable of the environment.
    case environment(String)
    /// A flag of the command line, as it was written.
    case flag(String)

    /// How a message about it begins.
    var description: String {
      switch self {
      case .file(let name, let line): line == 0 ? name : "\(name):\(line)"
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
}

/// Where a value of the settings comes from.
enum SettingOrigin: Hashable, Sendable, CustomStringConvertible {
  /// A line of the configuration file.
  case file(String, line: Int)
  /// A variable of the environment.
  case environment(String)
  /// A flag of the command line, as it was written.
  case flag(String)

  /// How a message begins that is about it.
  var description: String {
    switch self {
    case .file(let name, let line): line == 0 ? name : "\(name):\(line)"
    case .environment(let name): name
    case .flag(let name): name
    }
  }
}

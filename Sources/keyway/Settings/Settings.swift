import CommandSupport
import KeywayServer
import Logging
import Store
import Support

/// The settings of the server: the file, the environment and the flags, on top of the defaults.
///
/// The fields hold the values, initially the defaults. Most are the limits of the parts that they limit. Their names
/// and ranges are in the table, `Settings.all`.
struct Settings: Sendable {
  /// The point at which a write is acknowledged.
  enum Durability: String, CaseIterable, Sendable {
    case synced, relaxed
  }

  /// The configuration of the server: address, names and limits.
  var api = KeywayServer.Configuration()
  /// The path of the schema file, or `TextFile.example`.
  var schema = TextFile.example
  /// The value as set: `auto`, `none`, `TextFile.example` or a path. `seedFile` is the resulting file.
  var seed = "auto"
  var store = "keyway-data"
  var durability = Durability.synced
  var durabilityWindowMilliseconds = 100
  var logLevel = Logger.Level.info
  var logFormat = LogFormat.text
  var logBytes = 1 << 20
  var drainSeconds = 8
  var drainNoticeSeconds = 0

  /// The origin of each value, by the name of the setting. A value without an origin is a default.
  private(set) var origins: [String: SettingsError.Origin] = [:]
  /// Warnings about likely errors that do not keep the server from starting, as sentences.
  private(set) var warnings: [String] = []

  /// The store of the example, separate from the default store, in which another schema then finds none of its objects.
  static let exampleStore = "keyway-data/example"
  static let defaultStore = Settings().store

  /// The file with the initial objects of an empty store. With `auto`, it is the example's file if the schema is the
  /// example's, else nil.
  var seedFile: String? {
    switch seed {
    case "none": nil
    case "auto": schema == TextFile.example ? TextFile.example : nil
    default: seed
    }
  }
}

// MARK: Loading

extension Settings {
  /// The variables that begin with KEYWAY_ and are legitimate without being settings of the server.
  private static let otherVariables: Set<String> = ["KEYWAY_SERVER", "KEYWAY_TOKEN", SettingsSource.fileVariable]

  /// Loads the settings. Flags take precedence over the environment, then the file, then the defaults.
  static func load(
    configFile: String?, flags: [SettingFlag], environment: [String: String]
  ) throws(SettingsError) -> Settings {
    let file: SettingsFile? = if let configFile { try SettingsFile(path: configFile) } else { nil }
    return try load(file: file, flags: flags, environment: environment)
  }

  /// Loads the settings, with a file that has been read. The precedence is the same.
  static func load(
    file: SettingsFile?, flags: [SettingFlag], environment: [String: String],
    isStore: (String) -> Bool = SQLiteJournal.exists(inDirectory:)
  ) throws(SettingsError) -> Settings {
    var settings = Settings()
    for entry in file?.entries ?? [] { try settings.set(entry.name, to: entry.value, from: entry.origin) }
    try settings.setAll(from: environment)
    for flag in flags { try settings.set(flag.name, to: .untyped(flag.value), from: .flag(flag.flag)) }
    settings.placeExample(isStore: isStore)
    return settings
  }

  /// Gives the example a store of its own inside the default one, unless another schema or a store is set. A store that
  /// an earlier version has made for it in the default place is used there.
  private mutating func placeExample(isStore: (String) -> Bool) {
    guard takesDefaultStore else { return }
    store = isStore(Self.defaultStore) && !isStore(Self.exampleStore) ? Self.defaultStore : Self.exampleStore
  }

  /// True if no store is set, and the schema is the example's.
  var takesDefaultStore: Bool { origins["store"] == nil && schema == TextFile.example }

  /// Sets one value and records its origin.
  mutating func set(
    _ name: String, to value: Setting.Value, from origin: SettingsError.Origin
  ) throws(SettingsError) {
    guard let setting = Self.setting(named: name) else {
      throw SettingsError(origin: origin, reason: SettingsError.unknown(name))
    }
    do throws(Setting.Mismatch) {
      try setting.store(&self, value)
    } catch {
      throw SettingsError(origin: origin, reason: "\(name) \(error.reason)")
    }
    origins[name] = origin
  }

  /// Sets the values of environment variables. An empty variable is ignored, since container tools pass one for a
  /// variable that is not set, and so is one that Kubernetes sets. An unknown one is only a warning, since others may
  /// set variables with such names too.
  private mutating func setAll(from environment: [String: String]) throws(SettingsError) {
    let environment = environment.filter { !$0.value.isEmpty && !ServiceVariable.matches($0.key, $0.value) }
    for setting in Self.all {
      guard let text = environment[setting.environmentName] else { continue }
      try set(setting.name, to: .untyped(text), from: .environment(setting.environmentName))
    }
    let known = Self.otherVariables.union(Self.all.map(\.environmentName))
    for name in environment.keys.sorted() where name.hasPrefix("KEYWAY_") && !known.contains(name) {
      warnings.append("the environment has \(name), which is not a setting")
    }
  }
}

/// An error in the settings, with which the server does not start.
struct SettingsError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The origin of a value of the settings.
  enum Origin: Hashable, Sendable, CustomStringConvertible {
    /// A line of the configuration file, and a column if it matters. Line 0 is the file as a whole.
    case file(String, line: Int, column: Int? = nil)
    /// An environment variable.
    case environment(String)
    /// A flag of the command line, as written.
    case flag(String)

    /// The beginning of a message about it.
    var description: String {
      switch self {
      case .file(let name, line: 0, _): name
      case .file(let name, let line, let column): "\(name):\(line)" + (column.map { ":\($0)" } ?? "")
      case .environment(let name), .flag(let name): name
      }
    }
  }

  /// The origin of the value to correct.
  var origin: Origin
  /// The explanation.
  var reason: String

  /// `keyway.yaml:12: port is 70000, not between 0 and 65535`.
  var description: String { "\(origin): \(reason)" }

  /// Returns the reason for a name that is not a setting. It suggests the setting with the most similar name, or the
  /// settings of its group.
  static func unknown(_ name: String) -> String {
    let nearest = NearestName.of(name, among: Settings.all.map(\.name))
    let near = nearest.map { [$0] } ?? Settings.names(inGroup: name.prefix { $0 != "." })
    guard let last = near.last else { return "unknown setting \(name); keyway serve --print-config lists all" }
    let list = (near.count > 1 ? near.dropLast().joined(separator: ", ") + " or " : "") + last
    return "unknown setting \(name); did you mean \(list)?"
  }
}

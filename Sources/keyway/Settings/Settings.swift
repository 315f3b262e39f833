import CommandSupport
import KeywayServer
import Logging
import Store
import Support

/// How the server is to run: what the file, the environment and the flags say, on top of the defaults.
///
/// The fields hold the values, and at first the defaults; most are the limits of the parts that they bound. Their names
/// and ranges stand in the table, `Settings.all`.
struct Settings: Sendable {
  /// When a write is answered.
  enum Durability: String, CaseIterable, Sendable {
    case synced, relaxed
  }

  /// What the server takes: address, names and limits.
  var api = KeywayServer.Configuration()
  /// The path of the schema file, or `TextFile.example`.
  var schema = TextFile.example
  /// As it was set: `auto`, `none`, `TextFile.example` or a path; `seedFile` is what it comes to.
  var seed = "auto"
  var store = "keyway-data"
  var durability = Durability.synced
  var durabilityWindowMilliseconds = 100
  var logLevel = Logger.Level.info
  var logFormat = LogFormat.text
  var logBytes = 1 << 20
  var drainSeconds = 8
  var drainNoticeSeconds = 0

  /// Where each value comes from, by the name of the setting; a value without an origin is a default.
  private(set) var origins: [String: SettingsError.Origin] = [:]
  /// What looks like a mistake and does not keep the server from starting, in sentences.
  private(set) var warnings: [String] = []

  /// Where the example has its objects, so that a schema of one's own finds none of them in the default store.
  static let exampleStore = "keyway-data/example"
  static let defaultStore = Settings().store

  /// The file of objects that an empty store starts with: with `auto`, the example's where the schema is the example's.
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
  /// What starts with KEYWAY_, is no setting of the server, and yet no mistake.
  private static let otherVariables: Set<String> = ["KEYWAY_SERVER", "KEYWAY_TOKEN", SettingsSource.fileVariable]

  /// The settings that hold: flags over environment over file over defaults.
  static func load(
    configFile: String?, flags: [SettingFlag], environment: [String: String]
  ) throws(SettingsError) -> Settings {
    let file: SettingsFile? = if let configFile { try SettingsFile(path: configFile) } else { nil }
    return try load(file: file, flags: flags, environment: environment)
  }

  /// The same, with a file that has been read.
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

  /// Gives the example a store of its own inside of the default one, where no other schema and no store is set. A store
  /// that an earlier version has made for it in the default place goes on there.
  private mutating func placeExample(isStore: (String) -> Bool) {
    guard takesDefaultStore else { return }
    store = isStore(Self.defaultStore) && !isStore(Self.exampleStore) ? Self.defaultStore : Self.exampleStore
  }

  /// True if nothing says which store it is, and the schema is the example's.
  var takesDefaultStore: Bool { origins["store"] == nil && schema == TextFile.example }

  /// Sets one value and remembers where it comes from.
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

  /// An empty variable counts as none, as container tools pass it on for one that is not set, and so does one that
  /// Kubernetes sets. An unknown one is only a warning: others may set variables of this name, too.
  private mutating func setAll(from environment: [String: String]) throws(SettingsError) {
    let environment = environment.filter { !$0.value.isEmpty && !ServiceVariable.matches($0.key, $0.value) }
    for setting in Self.all {
      guard let text = environment[setting.environmentName] else { continue }
      try set(setting.name, to: .untyped(text), from: .environment(setting.environmentName))
    }
    let known = Self.otherVariables.union(Self.all.map(\.environmentName))
    for name in environment.keys.sorted() where name.hasPrefix("KEYWAY_") && !known.contains(name) {
      warnings.append("the environment has \(name), which is no setting")
    }
  }
}

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

extension Settings {
  /// What starts with KEYWAY_ and is none of the server's settings, yet no mistake.
  private static let otherVariables: Set<String> = ["KEYWAY_SERVER"]

  /// The settings that hold: flags over environment over file over defaults.
  static func load(
    configFile: String?, flags: [SettingFlag], environment: [String: String]
  ) throws(SettingsError) -> Settings {
    let file: SettingsFile? = if let configFile { try SettingsFile(path: configFile) } else { nil }
    return try load(file: file, fileName: configFile ?? "", flags: flags, environment: environment)
  }

  /// The same, with a file that has been read.
  static func load(
    file: SettingsFile?, fileName: String, flags: [SettingFlag], environment: [String: String]
  ) throws(SettingsError) -> Settings {
    var settings = Settings()
    for entry in file?.entries ?? [] {
      try settings.set(entry.name, to: entry.value, from: .file(fileName, line: entry.line))
    }
    try settings.takeEnvironment(environment)
    for flag in flags { try settings.set(flag.name, to: .untyped(flag.value), from: .flag(flag.flag)) }
    return settings
  }

  private mutating func set(
    _ name: String, to value: SettingValue, from origin: SettingOrigin
  ) throws(SettingsError) {
    guard let definition = SettingsTable.definition(named: name) else {
      throw SettingsError(origin: origin, reason: SettingsTable.unknown(name))
    }
    try set(definition, to: value, from: origin)
  }

  /// An empty variable counts as none, as container tools pass it on for one that is not set. An unknown one is only a
  /// warning: the environment is not ours alone (Kubernetes sets KEYWAY_SERVICE_HOST for a service called keyway).
  private mutating func takeEnvironment(_ environment: [String: String]) throws(SettingsError) {
    var known = Self.otherVariables
    for definition in SettingsTable.all {
      let name = definition.environmentName
      known.insert(name)
      guard let text = environment[name], !text.isEmpty else { continue }
      try set(definition, to: .untyped(text), from: .environment(name))
    }
    for name in environment.keys.sorted() where name.hasPrefix("KEYWAY_") && !known.contains(name) {
      warnings.append("the environment has \(name), which is no setting")
    }
  }
}

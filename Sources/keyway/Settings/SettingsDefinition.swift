/// One row of the table of settings.
struct SettingDefinition: Sendable {
  /// The name, dotted: `heartbeat.seconds`.
  let name: String
  /// Type, default and range.
  let kind: SettingKind
  /// What it is, in one line.
  let help: String

  init(_ name: String, _ kind: SettingKind, _ help: String) {
    self.name = name
    self.kind = kind
    self.help = help
  }

  /// The variable of the environment: `heartbeat.seconds` is KEYWAY_HEARTBEAT_SECONDS, `request.headerBytes`
  /// KEYWAY_REQUEST_HEADER_BYTES.
  var environmentName: String {
    var result = "KEYWAY_"
    for character in name {
      if character == "." {
        result += "_"
      } else {
        if character.isUppercase { result += "_" }
        result += character.uppercased()
      }
    }
    return result
  }
}

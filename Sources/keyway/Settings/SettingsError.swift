/// Settings that the server does not start with.
struct SettingsError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What has to be corrected.
  var origin: SettingOrigin
  /// What is wrong with it.
  var reason: String

  /// `keyway.yaml:12: port is 70000, not between 0 and 65535`.
  var description: String { "\(origin): \(reason)" }
}

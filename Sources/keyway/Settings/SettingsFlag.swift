/// A setting that the command line gives.
struct SettingFlag: Hashable, Sendable {
  /// The flag as it was written: `--port`, `--set fetch.limit`.
  var flag: String
  /// The name of the setting.
  var name: String
  /// Its value.
  var value: String

  /// `--NAME VALUE`, for the flags that are named like their settings.
  init(_ name: String, _ value: String) {
    self.flag = "--\(name)"
    self.name = name
    self.value = value
  }

  /// `--set NAME=VALUE`; nil without an equals sign.
  init?(assignment: String) {
    guard let equals = assignment.firstIndex(of: "=") else { return nil }
    name = String(assignment[..<equals])
    value = String(assignment[assignment.index(after: equals)...])
    flag = "--set \(name)"
  }
}

/// A value of a setting as its source has it: typed in a file, text everywhere else.
enum SettingValue: Hashable, Sendable {
  /// Text of the environment or the command line, which has no types.
  case untyped(String)
  /// A text of the file.
  case text(String)
  /// A whole number of the file.
  case integer(Int)
  /// A list of texts of the file.
  case list([String])
  /// Something of the file that no setting can be, in words.
  case other(String)
}

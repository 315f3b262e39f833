import Store

/// What an operator can do about an error of a store.
enum StoreAdvice {
  /// The error, and below it which command helps; `directory` is that of the store.
  static func text(_ error: any Error, directory: String) -> String {
    var text = "\(error)"
    if !text.contains(directory) { text = "\(directory): \(text)" }
    guard let advice = advice(error, directory) else { return text }
    return "\(text)\n\(advice)"
  }

  /// Stands for the directory where nodes keep their journal in a database.
  static let database = "the database"

  private static func advice(_ error: any Error, _ directory: String) -> String? {
    guard directory != database else { return nil }
    return switch error {
    case StoreError.journal(let error): advice(error, directory)
    case StoreError.replay, JournalError.damaged:
      """
      Nothing was changed. What can be done:
        keyway store verify --store \(directory)                    says what is whole, and up to which revision
        keyway store repair --store \(directory) --until REVISION   goes on with what is whole
        keyway store restore BACKUP --store \(directory) --replace  goes on with a backup
      """
    case StoreError.schema:
      """
      Nothing was changed. What can be done:
        keyway serve --store OTHER                                  keeps objects of this schema in a store of its own
        keyway store migrate --store \(directory) --schema SCHEMA --step '…' --dry-run   says what steps come to
      """
    case JournalError.inUse: "Stop that process first."
    default: nil
    }
  }

  /// Does something with a store; an error becomes a `CommandFailure` that says what helps.
  static func giving<Result>(for directory: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let error where error is StoreError || error is JournalError {
      throw CommandFailure(text(error, directory: directory))
    }
  }
}

/// The end of an import that stopped on the way.
struct ImportFailure: Error, Sendable, CustomStringConvertible {
  /// What became of the batch that was under way.
  enum Fate: String, Hashable, Sendable {
    case notApplied = "was not applied"
    /// It went in several transactions, and not all of them are in the store.
    case appliedInPart = "was applied in part"
    /// There was no response.
    case unknown = "may have been applied"
  }

  var file: String
  /// The first line that failed.
  var cause: ImportError
  var rows: Int
  /// The batch that was under way, from 1, where there are batches.
  var batch: (number: Int, fate: Fate)?
  /// How many references were held back for objects further down, and are not set now.
  var heldReferences = 0

  /// The cause, and what is in the store now.
  var description: String {
    var text = cause.textWithHint(file: file) + "\nstopped"
    if let batch { text += " in batch \(batch.number), which \(batch.fate.rawValue)" }
    text += "; \(rows) \(rows == 1 ? "row" : "rows") had been imported"
    if heldReferences > 0 { text += "; references that were held back and are not set: \(heldReferences)" }
    return text
  }
}

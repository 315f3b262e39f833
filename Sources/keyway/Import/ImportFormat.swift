internal import ArgumentParser

/// How the file of an import is written.
enum ImportFormat: String, Hashable, Sendable, CaseIterable, ExpressibleByArgument {
  /// A table of one entity's objects (RFC 4180).
  case csv
  /// One JSON object a line.
  case jsonl

  /// What the name of a file says: JSON lines by their extension, else CSV.
  init(file: String) {
    let name = file.lowercased()
    self = name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson") ? .jsonl : .csv
  }
}

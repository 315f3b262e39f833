import ArgumentParser

/// What only an import of JSON lines takes: the bounds of what it holds and sends.
struct JSONLinesOptions: ParsableArguments {
  static let names = "--batch, --batch-bytes, --held-references and --held-bytes"

  @Option(help: ArgumentHelp("How many lines are one transaction.", valueName: "lines"))
  var batch = ImportLimits().batchRows

  @Option(
    help: ArgumentHelp("How large a transaction may be; the server has request.bodyBytes.", valueName: "bytes"))
  var batchBytes = ImportLimits().batchBytes

  @Option(help: ArgumentHelp("How many references may wait for objects further down.", valueName: "count"))
  var heldReferences = ImportLimits().heldReferences

  @Option(help: ArgumentHelp("How many bytes of objects may wait for others that they need.", valueName: "bytes"))
  var heldBytes = ImportLimits().heldBytes

  /// Whether all of them are the defaults.
  var isUnused: Bool { limits == ImportLimits() }

  var limits: ImportLimits {
    ImportLimits(
      batchRows: batch, batchBytes: batchBytes, heldReferences: heldReferences, heldBytes: heldBytes)
  }

  func validate() throws {
    guard (1...ImportLimits.operations).contains(batch) else {
      throw ValidationError("--batch is between 1 and \(ImportLimits.operations)")
    }
    guard (1...(1 << 30)).contains(batchBytes) else {
      throw ValidationError("--batch-bytes is between 1 and \(1 << 30)")
    }
    guard heldReferences >= 0, heldBytes >= 0 else {
      throw ValidationError("--held-references and --held-bytes are at least 0")
    }
  }
}

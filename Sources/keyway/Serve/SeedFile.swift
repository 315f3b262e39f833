import CEmbeddedFiles
import Dispatch
import KeyValueModel
import KeywayClient
import Store
import Support

/// The objects that an empty store begins with: JSON lines, each an object with its `@ref`, in one transaction.
enum SeedFile {
  /// Creates the objects of a file, or of the example. Throws a `CommandFailure` with file and line; then nothing was
  /// created.
  static func load(_ path: String, into store: Store) throws {
    let text = try TextFile.read(path, orEmbedded: keyway_example_objects())
    var operations: [KeyValueModel.Operation] = []
    var lines: [Int] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    where !line.allSatisfy(\.isWhitespace) {
      operations.append(try operation(line, place: "\(path):\(index + 1)"))
      lines.append(index + 1)
    }
    // Where several nodes start with an empty store, one of them fills it.
    if let error = try commit(operations, to: store), store.revision == 0 {
      throw CommandFailure("\(path):\(lines[error.operation ?? 0]): \(error.detail)")
    }
  }

  private static func operation(_ line: Substring, place: String) throws -> KeyValueModel.Operation {
    do throws(JSONError) {
      guard let object = try Value(json: String(line)).asObject,
        let reference = object["@ref"]?.asString.flatMap({ Reference($0) })
      else { throw JSONError(reason: "a line is an object with its @ref", offset: 0) }
      return .create(reference, object)
    } catch {
      throw CommandFailure("\(place): \(error)")
    }
  }

  private static func commit(_ operations: [KeyValueModel.Operation], to store: Store) throws -> ModelError? {
    let result = Locked<(mistake: ModelError?, refusal: StoreUnavailable?)>((nil, nil))
    let done = DispatchSemaphore(value: 0)
    // The operator's own, and no request waits yet.
    _ = store.submit(Transaction(operations), limits: .unlimited) { outcome, _, _ in
      if case .failure(let error) = outcome { result.withLock { $0.mistake = error } }
      return { unavailable in
        result.withLock { $0.refusal = unavailable }
        done.signal()
      }
    }
    done.wait()
    let (mistake, refusal) = result.withLock { $0 }
    if let refusal { throw CommandFailure(refusal.reason) }
    return mistake
  }
}

import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import KeywayClient
import OrderedCollections
import Store

/// Implements `keyway export`: writes the objects at one revision as JSON lines that `keyway import` reads.
struct ExportCommand: AsyncParsableCommand {
  /// The maximum number of attempts to export to a file, if the state that it reads is no longer kept.
  private static let attempts = 3

  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes all objects, or those of some entities, as JSON lines.",
    discussion: """
      keyway export --output objects.jsonl
      keyway export Account Quote > some.jsonl

      All lines show the store at one revision. Computed keys are left out; keyway import makes an equal store from the
      rest, where objects with a lifetime in seconds (@lifetime) start it again. With --output the file appears once it
      is complete, and an existing file stays until then.
      """)

  @Argument(help: ArgumentHelp("An entity, with its subentities; without any, all objects.", valueName: "entity"))
  var entities: [String] = []

  @Option(help: ArgumentHelp("The file to write; without it, standard output.", valueName: "file"))
  var output: String?

  @OptionGroup var options: ClientOptions

  func run() async throws {
    let client = try options.client()
    let entities = entities
    guard let output, output != InputFile.standardInput else {
      return try await Self.print(Exporter(client: client, entities: entities, schema: .fetch(client)))
    }
    try await Interruption.cancelling {
      do {
        let exporter = try await Exporter(client: client, entities: entities, schema: .fetch(client))
        let start = ContinuousClock.now
        let tally = try await Self.write(exporter, to: output)
        StandardOutput.line(tally.text(seconds: start.elapsedSeconds))
        if let remark = tally.remark { StandardError.line(remark) }
      } catch is CancellationError {
        throw CommandFailure("interrupted; \(output) is unchanged")
      }
    }
  }

  private static func print(_ exporter: Exporter) async throws {
    do {
      let tally = try await exporter.run { bytes in
        if StandardOutput.isTerminal { return StandardOutput.write(String(decoding: bytes, as: UTF8.self)) }
        try FileHandle.standardOutput.write(contentsOf: Data(bytes))
      }
      if let remark = tally.remark { StandardError.line(remark) }
    } catch let problem as Problem where problem.status == 410 {
      throw CommandFailure("\(problem)\nthe output is incomplete: \(Self.advice)")
    }
  }

  /// Writes a file. Starts over if the state is no longer kept.
  private static func write(_ exporter: Exporter, to path: String) async throws -> Exporter.Tally {
    let file = try ExportFile(path)
    var attempt = 1
    while true {
      do {
        let tally = try await exporter.run(file.write)
        try file.commit()
        return tally
      } catch let problem as Problem where problem.status == 410 {
        guard attempt < attempts else { throw CommandFailure("\(problem)\nnothing was written: \(advice)") }
        StandardError.line("keyway: \(problem); starting over")
        try file.restart()
        attempt += 1
      }
    }
  }

  private static let advice = "the server keeps a state for fetch.pageSeconds, and of at most fetch.pages fetches"
}

/// Reads objects in pages, all of one revision, and writes them as JSON lines.
private struct Exporter {
  struct Tally: Hashable, Sendable {
    var objects = 0
    /// The revision of the exported state.
    var revision: Int64 = 0
    /// The number of objects whose lifetime ends with a stream, which an export cannot express.
    var streamLeases = 0

    /// `exported 14 objects at revision 1 in 0.1 s`
    func text(seconds: Double) -> String {
      let noun = objects == 1 ? "object" : "objects"
      let count = ImportSummary.grouped(objects)
      return String(format: "exported %@ %@ at revision %@ in %.1f s", count, noun, "\(revision)", seconds)
    }

    /// A remark on what the lines omit, or nil if they are complete.
    var remark: String? {
      guard streamLeases > 0 else { return nil }
      let subject = streamLeases == 1 ? "1 object ends" : "\(ImportSummary.grouped(streamLeases)) objects end"
      return "keyway: \(subject) with a stream; an import creates them without a lifetime"
    }
  }

  let client: Client
  /// The entities to export, with their subentities. Empty for all.
  let entities: [String]
  let schema: ImportSchema

  /// Passes the lines of each page to `write`. Throws a `Problem` with the code `page-expired` if the state of the
  /// first page is no longer kept. The lines written until then are not a complete export.
  func run(_ write: ([UInt8]) throws -> Void) async throws -> Tally {
    var tally = Tally()
    let path = ResourcePath.adding(
      [("entities", entities.isEmpty ? nil : entities.joined(separator: ","))], to: "/v1/objects")
    try await PagedFetch(client: client, path: path).forEach { page in
      var bytes: [UInt8] = []
      for case .object(let object) in page.objects {
        append(object, to: &bytes, &tally)
        tally.objects += 1
      }
      try write(bytes)
      tally.revision = page.revision
    }
    return tally
  }

  /// Appends a line that an import accepts, without the revision and computed keys. A lease of seconds is kept. One
  /// that ends with a stream is removed and counted, since that stream does not exist for the import.
  private func append(_ object: JSONObject, to bytes: inout [UInt8], _ tally: inout Tally) {
    var object = object
    object["@revision"] = nil
    if object["@lifetime"]?.asString != nil {
      object["@lifetime"] = nil
      tally.streamLeases += 1
    }
    if let text = object["@ref"]?.asString, let entity = Reference(text)?.entity {
      for (name, key) in schema.entities[entity] ?? [:] where key.kind == .computed { object[name] = nil }
    }
    object.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "\n"))
  }
}

/// A file that is created whole or not at all: it is written under another name in the same folder, and renamed at the
/// end.
private final class ExportFile {
  private let path: String
  private let temporaryPath: String
  private let handle: FileHandle
  private var isFinished = false

  /// Begins a file at `path`, following symbolic links. An existing file stays until `commit`; the new one gets its
  /// permissions.
  init(_ path: String) throws {
    let target = URL(fileURLWithPath: path).resolvingSymlinksInPath()
    self.path = target.path
    var status = stat()
    let exists = stat(target.path, &status) == 0
    if exists, status.st_mode & S_IFMT != S_IFREG {
      throw CommandFailure("\(path): is not a regular file; without --output an export goes to standard output")
    }
    let name = ".\(target.lastPathComponent).\(UUID().uuidString.prefix(8)).part"
    temporaryPath = target.deletingLastPathComponent().appendingPathComponent(name).path
    let descriptor = open(temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, exists ? 0o600 : 0o666)
    guard descriptor >= 0 else {
      throw CommandFailure("\(path): cannot be written: \(String(cString: strerror(errno)))")
    }
    handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    guard exists else { return }
    // A file that few can read stays so; without its group, its group's permissions would be another group's.
    let hasGroup = fchown(descriptor, .max, status.st_gid) == 0
    guard fchmod(descriptor, status.st_mode & (hasGroup ? 0o777 : 0o700)) == 0 else {
      throw CommandFailure("\(path): cannot be written: \(String(cString: strerror(errno)))")
    }
  }

  deinit {
    if !isFinished { unlink(temporaryPath) }
  }

  func write(_ bytes: [UInt8]) throws {
    do {
      try handle.write(contentsOf: Data(bytes))
    } catch {
      throw CommandFailure("\(path): cannot be written: \(error.systemReason)")
    }
  }

  func restart() throws {
    try handle.truncate(atOffset: 0)
  }

  /// Moves the file to its path.
  func commit() throws {
    try handle.synchronize()
    guard rename(temporaryPath, path) == 0 else {
      throw CommandFailure("\(path): cannot be written: \(String(cString: strerror(errno)))")
    }
    isFinished = true
  }
}

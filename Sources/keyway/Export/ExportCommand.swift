import ArgumentParser
import CommandSupport
import Foundation
import KeywayClient

/// `keyway export`: objects at one revision, as JSON lines that `keyway import` reads.
struct ExportCommand: AsyncParsableCommand {
  /// How often an export into a file is begun, where the state that it reads is no longer kept.
  static let attempts = 3

  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Writes all objects, or those of some entities, as JSON lines.",
    discussion: """
      keyway export --output objects.jsonl
      keyway export Account Quote > some.jsonl

      All lines show the store at one revision. Computed keys are left out; keyway import makes an equal store of the
      rest, in which objects with a lifetime in seconds (@lifetime) begin it anew. With --output the file is there when
      it is whole, and what was there before stays until then.
      """)

  @Argument(help: ArgumentHelp("An entity, with what extends it; without any, all objects.", valueName: "entity"))
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
        throw CommandFailure("interrupted; \(output) is as it was")
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
      throw CommandFailure("\(problem)\nwhat was written is not whole: \(Self.advice)")
    }
  }

  /// Writes a file, from the beginning again where the state is no longer kept.
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
        StandardError.line("keyway: \(problem); beginning anew")
        try file.restart()
        attempt += 1
      }
    }
  }

  private static let advice = "the server keeps a state for fetch.pageSeconds, of so many fetches as fetch.pages says"
}

internal import ArgumentParser
internal import Foundation
internal import Journal
internal import KeyValueModel
internal import ModelStore

/// `keyway store migrate`: the objects of a store under another schema.
struct StoreMigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Takes the objects of a store to another schema.",
    discussion: """
      keyway store migrate --schema new.yaml --dry-run
      keyway store migrate --schema new.yaml --step 'rename Person.name fullName' --step 'drop Invoice'

      keyway serve does by itself what loses nothing. The steps, in order: rename Entity NEW, rename Entity.key NEW, drop
      Entity, drop Entity.key, convert Entity.key [or JSON], fill Entity.key JSON. Either all of it is done or nothing.
      """)

  @Option(help: ArgumentHelp("The schema that the objects are to have.", valueName: "file"))
  var schema: String

  @Option(help: ArgumentHelp("What is to become of data; can be repeated.", valueName: "step"))
  var step: [String] = []

  @Option(help: ArgumentHelp("A file of steps, one a line, that come before those of --step.", valueName: "file"))
  var steps: String?

  @Flag(help: "Say what would be done, and change nothing; may be used while a server runs.")
  var dryRun = false

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = try options.load().store
    let (schema, text) = try SchemaFile.loadWithText(schema)
    let steps = try allSteps()
    let journal = try dryRun ? openForReading(directory) : StoreOptions.open(directory)
    defer { journal.close() }
    guard !steps.isEmpty || StoreMigration.isDue(journal, to: text) else {
      return StandardOutput.line("\(directory): it has this schema already; there is nothing to do")
    }
    // The advice for an obstacle is this command.
    let migration: StoreMigration
    do {
      migration = try StoreAdvice.giving(for: directory) { () throws -> StoreMigration in
        do throws(StoreError) {
          return try StoreMigration(journal, to: schema, text: text, steps: steps)
        } catch {
          guard case .schema = error else { throw error }
          throw CommandFailure("\(directory): \(error)\nNothing was changed.")
        }
      }
    }
    for remark in migration.remarks { StandardError.line("keyway: \(remark)") }
    StandardOutput.line("\(migration.report)")
    guard !dryRun else {
      return StandardOutput.line("nothing was changed; revision \(migration.revision) would be this")
    }
    try StoreAdvice.giving(for: directory) {
      try migration.write(to: journal, milliseconds: StoreOptions.now)
    }
    StandardOutput.line("\(directory): revision \(migration.revision) is the first under the new schema")
  }

  private func openForReading(_ directory: String) throws -> SQLiteJournal {
    try StoreAdvice.giving(for: directory) { try SQLiteJournal(reading: directory) }
  }

  private func allSteps() throws -> [MigrationStep] {
    var all: [MigrationStep] = []
    do {
      if let steps {
        do {
          all = try MigrationStep.steps(inFile: String(contentsOfFile: steps, encoding: .utf8))
        } catch let error as MigrationStepError {
          throw CommandFailure("\(steps): \(error)")
        } catch {
          throw CommandFailure("\(steps): cannot be read: \(error.localizedDescription)")
        }
      }
      return all + (try step.map { text in try MigrationStep(text) })
    } catch let error as MigrationStepError {
      throw CommandFailure("\(error)")
    }
  }
}

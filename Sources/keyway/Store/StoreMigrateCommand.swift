import ArgumentParser
import Cluster
import KeyValueModel
import Store

/// Implements `keyway store migrate`: moves the objects of a store to another schema.
struct StoreMigrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Moves the objects of a store to another schema.",
    discussion: """
      keyway store migrate --schema new.yaml --dry-run
      keyway store migrate --schema new.yaml --step 'rename Person.name fullName' --step 'drop Invoice'

      keyway serve does by itself what loses no data. The steps, in order: rename Entity NEW, rename Entity.key NEW,
      drop Entity, drop Entity.key, convert Entity.key [or JSON], fill Entity.key JSON, set Entity.key = EXPRESSION.
      Either all steps are done or none. A journal that nodes share in a database (--journal) can only be migrated in
      this way.
      """)

  @Option(help: ArgumentHelp("The new schema of the objects.", valueName: "file"))
  var schema: String

  @Option(help: ArgumentHelp("A migration step; can be repeated.", valueName: "step"))
  var step: [String] = []

  @Option(help: ArgumentHelp("A file of steps, one per line, to do before those of --step.", valueName: "file"))
  var steps: String?

  @Flag(help: "Report what would be done, and change nothing; may be used while a server runs.")
  var dryRun = false

  @Option(help: ArgumentHelp("The PostgreSQL database that several nodes keep their journal in.", valueName: "url"))
  var journal: String?

  @OptionGroup var options: StoreOptions

  func run() throws {
    let directory = journal == nil ? try options.load().store : StoreAdvice.database
    let (schema, text) = try SchemaFile.loadWithText(schema)
    let steps = try allSteps()
    let journal = try open(directory)
    defer { journal.close() }
    guard !steps.isEmpty || StoreMigration.isDue(journal, to: text) else {
      return StandardOutput.line("\(directory): the store already has this schema; there is nothing to do")
    }
    let migration = try StoreAdvice.giving(for: directory) {
      do throws(StoreError) {
        return try StoreMigration(journal, to: schema, text: text, steps: steps)
      } catch .schema(let reasons) {
        // The usual advice is this very command.
        throw CommandFailure("\(directory): \(StoreError.schema(reasons))\nNothing was changed.")
      }
    }
    for remark in migration.remarks { StandardError.line("keyway: \(remark)") }
    StandardOutput.line("\(migration.report)")
    guard !dryRun else {
      return StandardOutput.line("nothing was changed; this would be revision \(migration.revision)")
    }
    try StoreAdvice.giving(for: directory) {
      try migration.write(to: journal, milliseconds: StoreOptions.now)
    }
    StandardOutput.line("\(directory): revision \(migration.revision) is the first under the new schema")
  }

  private func open(_ directory: String) throws -> any TransactionJournal {
    if let journal { return try StoreAdvice.giving(for: directory) { try PostgresJournal(existing: journal) } }
    guard dryRun else { return try StoreOptions.open(directory) }
    return try StoreAdvice.giving(for: directory) { try SQLiteJournal(reading: directory) }
  }

  private func allSteps() throws -> [MigrationStep] {
    var all: [MigrationStep] = []
    var place = ""
    do {
      if let steps {
        place = "\(steps): "
        all = try MigrationStep.steps(inFile: TextFile.read(steps))
        place = ""
      }
      return all + (try step.map { text in try MigrationStep(text) })
    } catch let error as MigrationStepError {
      throw CommandFailure("\(place)\(error)")
    }
  }
}

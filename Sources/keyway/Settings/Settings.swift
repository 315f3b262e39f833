/// How the server is to run: what the file, the environment and the flags say, on top of the defaults.
///
/// Plain values. Their names, defaults and ranges stand in `SettingsTable`, and nowhere else; an instance that no source
/// has filled holds the defaults.
struct Settings: Sendable {
  // The initial values below never show: `init` overwrites them from the table.
  var host = ""
  var port = 0
  var names: [String] = []
  var schema = ""
  /// As it was set: `auto`, `none` or a path. `seedFile` is what it comes to.
  var seed = ""
  var store = ""
  var logLevel = ""
  var logFormat = ""
  var heartbeatSeconds = 0
  var historyRevisions = 0
  var historyBytes = 0
  /// 0 means for as long as there is room.
  var historySeconds = 0
  var snapshotRevisions = 0
  var snapshotBytes = 0
  /// `synced` or `relaxed`.
  var durability = ""
  var durabilityWindow = 0
  var resumeRevisions = 0
  var resumeRows = 0
  var resumeBytes = 0
  var connectionsMaximum = 0
  var connectionsPerAddress = 0
  var requestHeaderBytes = 0
  var requestBodyBytes = 0
  var requestSeconds = 0
  var keepAliveSeconds = 0
  /// 0 means as many as there are cores.
  var httpThreads = 0
  var streamsMaximum = 0
  var streamsOpening = 0
  var streamsCells = 0
  var queriesMaximum = 0
  var queriesRows = 0
  var queriesFilterCost = 0
  var streamsKeyPaths = 0
  var streamsPendingBytes = 0
  var streamsReplayBytes = 0
  var streamsChangesPerEvent = 0
  var streamsStallSeconds = 0
  /// 0 means for as long as the client likes.
  var streamsLifetimeSeconds = 0
  /// 0 means as many as there are cores.
  var streamsThreads = 0
  var writesQueued = 0
  var writesBatchBytes = 0
  var patchOperations = 0
  var answerObjects = 0
  var journalRecords = 0
  var journalBytes = 0
  var fetchFilterCost = 0
  var fetchLimit = 0
  var fetchPages = 0
  var fetchPageSeconds = 0
  var idempotencyKeys = 0
  var idempotencyBytes = 0
  var idempotencySeconds = 0
  var drainSeconds = 0

  /// Where each value comes from, by the name of the setting; what is not there is a default.
  private(set) var origins: [String: SettingOrigin] = [:]
  /// What looks like a mistake but is none that has to keep the server from starting, in sentences.
  var warnings: [String] = []

  /// The defaults.
  init() {
    for definition in SettingsTable.all { definition.kind.reset(&self) }
  }

  /// Sets one value and remembers where it comes from.
  mutating func set(
    _ definition: SettingDefinition, to value: SettingValue, from origin: SettingOrigin
  ) throws(SettingsError) {
    do throws(InvalidSetting) {
      try definition.kind.store(value, in: &self)
    } catch {
      throw SettingsError(origin: origin, reason: "\(definition.name) \(error.reason)")
    }
    origins[definition.name] = origin
  }

  /// The file of objects that an empty store starts with: with `auto`, the example's where the schema is the example's.
  var seedFile: String? {
    switch seed {
    case "none": nil
    case "auto": schema == SettingsTable.exampleSchema ? SettingsTable.exampleSeed : nil
    default: seed
    }
  }
}

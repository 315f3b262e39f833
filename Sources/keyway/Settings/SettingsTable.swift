/// All settings: the one source of names, defaults, ranges and help for the file, the environment, the flags of
/// `serve`, `--print-config` and the messages about wrong ones.
///
/// swift-configuration was considered: it drops a value of the wrong type silently to the default and cannot name
/// unknown keys.
enum SettingsTable {
  /// The schema that is served where nobody names one.
  static let exampleSchema = "Config/example/schema.yaml"
  /// The objects that go with it.
  static let exampleSeed = "Config/example/objects.jsonl"

  /// In the order of the file.
  static let all: [SettingDefinition] = place + storage + connections + streams + work

  private static let place = [
    SettingDefinition("host", .text(\.host, "127.0.0.1", choices: []), "the address to listen on"),
    SettingDefinition("port", .integer(\.port, 8080, 0...65535), "the port to listen on; 0 takes a free one"),
    SettingDefinition(
      "names", .list(\.names, []), "host names to answer to, besides localhost, 127.0.0.1, [::1] and host"),
    SettingDefinition(
      "log.level", .text(\.logLevel, "info", choices: logLevels), "what is logged: \(logLevels[0]) to critical"),
    SettingDefinition(
      "log.format", .text(\.logFormat, "text", choices: ["text", "json"]), "text or json, one line each"),
  ]

  private static let logLevels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]

  private static let storage = [
    SettingDefinition("schema", .text(\.schema, exampleSchema, choices: []), "the schema file"),
    SettingDefinition(
      "seed", .text(\.seed, "auto", choices: []),
      "objects of an empty store, JSON lines: a path, none, or auto for the example's with the example schema"),
    SettingDefinition(
      "store", .text(\.store, "keyway-data", choices: []), "the directory where objects are kept, or memory"),
    SettingDefinition(
      "durability", .text(\.durability, "synced", choices: ["synced", "relaxed"]),
      "synced: a write is answered once it is on the disk; relaxed: up to durabilityWindow earlier"),
    SettingDefinition(
      "durabilityWindow.milliseconds", .integer(\.durabilityWindow, 100, 1...60_000),
      "with durability relaxed, what a power failure may take, in milliseconds"),
    SettingDefinition(
      "history.revisions", .integer(\.historyRevisions, 10_000, 1...10_000_000), "revisions kept for coming back"),
    SettingDefinition(
      "history.bytes", .integer(\.historyBytes, 64 << 20, 1 << 16...1 << 40), "memory for them, in bytes"),
    SettingDefinition(
      "history.seconds", .integer(\.historySeconds, 86_400, 0...31_536_000), "how long they are kept; 0 for ever"),
    SettingDefinition(
      "snapshot.revisions", .integer(\.snapshotRevisions, 100_000, 10...100_000_000),
      "revisions after which all objects are written down anew"),
    SettingDefinition(
      "snapshot.bytes", .integer(\.snapshotBytes, 256 << 20, 1 << 16...1 << 40),
      "bytes of the journal after which they are"),
    SettingDefinition(
      "resume.revisions", .integer(\.resumeRevisions, 50_000, 0...100_000_000),
      "revisions kept ready for those who come back to the same one"),
    SettingDefinition(
      "resume.bytes", .integer(\.resumeBytes, 32 << 20, 0...1 << 40), "missed events kept for the next, in bytes"),
    SettingDefinition(
      "resume.rows", .integer(\.resumeRows, 200_000, 0...1_000_000_000), "rows of live queries kept for the next"),
  ]

  private static let connections = [
    SettingDefinition(
      "connections.maximum", .integer(\.connectionsMaximum, 16_384, 1...1_000_000), "connections at a time"),
    SettingDefinition(
      "connections.perAddress", .integer(\.connectionsPerAddress, 16_384, 1...1_000_000), "connections of one address"),
    SettingDefinition(
      "request.headerBytes", .integer(\.requestHeaderBytes, 8192, 1024...65536), "the largest head of a request"),
    SettingDefinition(
      "request.bodyBytes", .integer(\.requestBodyBytes, 1 << 20, 1024...1 << 30), "the largest body of a request"),
    SettingDefinition(
      "request.seconds", .integer(\.requestSeconds, 10, 1...3600), "how long a request may take to arrive"),
    SettingDefinition(
      "keepAlive.seconds", .integer(\.keepAliveSeconds, 75, 1...3600), "how long a connection may wait for a request"),
    SettingDefinition(
      "http.threads", .integer(\.httpThreads, 0, 0...256), "threads that serve requests; 0 for one a core"),
  ]

  private static let streams = [
    SettingDefinition("heartbeat.seconds", .integer(\.heartbeatSeconds, 15, 1...3600), "silence before a heartbeat"),
    SettingDefinition("streams.maximum", .integer(\.streamsMaximum, 12_000, 1...1_000_000), "streams at a time"),
    SettingDefinition(
      "streams.opening", .integer(\.streamsOpening, 12_000, 1...1_000_000),
      "streams that wait to be opened: those that resume, and live queries, each"),
    SettingDefinition("streams.cells", .integer(\.streamsCells, 1000, 1...100_000), "cells of a stream"),
    SettingDefinition(
      "streams.keyPaths", .integer(\.streamsKeyPaths, 64, 1...10_000), "key paths of a cell or a request"),
    SettingDefinition(
      "streams.pendingBytes", .integer(\.streamsPendingBytes, 262_144, 4096...1 << 30),
      "what may wait for one slow reader, in bytes"),
    SettingDefinition(
      "streams.replayBytes", .integer(\.streamsReplayBytes, 16_777_216, 4096...1 << 30),
      "what one resumption may be sent of missed events, in bytes"),
    SettingDefinition(
      "streams.changesPerEvent", .integer(\.streamsChangesPerEvent, 100_000, 1...10_000_000),
      "notifications of one commit for one stream"),
    SettingDefinition(
      "streams.stallSeconds", .integer(\.streamsStallSeconds, 120, 1...3600), "how long a reader may take nothing"),
    SettingDefinition(
      "streams.lifetimeSeconds", .integer(\.streamsLifetimeSeconds, 0, 0...31_536_000),
      "how long a stream may live; 0 for ever"),
    SettingDefinition(
      "streams.threads", .integer(\.streamsThreads, 0, 0...256), "threads that feed streams; 0 for one a core"),
  ]

  private static let work = [
    SettingDefinition("writes.queued", .integer(\.writesQueued, 8192, 1...1_000_000), "writes that may wait"),
    SettingDefinition(
      "writes.batchBytes", .integer(\.writesBatchBytes, 8 << 20, 1 << 16...1 << 30),
      "bytes of the writes that are committed with one sync"),
    SettingDefinition(
      "patch.operations", .integer(\.patchOperations, 1000, 1...1_000_000), "operations of a JSON Patch"),
    SettingDefinition(
      "answer.objects", .integer(\.answerObjects, 100_000, 1...10_000_000),
      "objects of one answer by expand, or of a to-many behind another"),
    SettingDefinition(
      "journal.records", .integer(\.journalRecords, 10_000, 1...1_000_000), "transactions of one answer of the journal"),
    SettingDefinition(
      "journal.bytes", .integer(\.journalBytes, 16 << 20, 4096...1 << 30), "bytes of such an answer"),
    SettingDefinition(
      "queries.maximum", .integer(\.queriesMaximum, 20_000, 1...10_000_000), "different live queries at a time"),
    SettingDefinition(
      "queries.rows", .integer(\.queriesRows, 5_000_000, 1000...1_000_000_000),
      "rows of all live queries together, when one more is opened"),
    SettingDefinition(
      "queries.filterCost", .integer(\.queriesFilterCost, 2_000_000, 1000...10_000_000_000),
      "steps that the filter of one live query may take for one commit"),
    SettingDefinition(
      "fetch.filterCost", .integer(\.fetchFilterCost, 20_000_000, 1000...10_000_000_000),
      "steps that the filter of one fetch, or of a live query that is opened, may take"),
    SettingDefinition("fetch.limit", .integer(\.fetchLimit, 1000, 1...100_000), "the largest page of a fetch"),
    SettingDefinition("fetch.pages", .integer(\.fetchPages, 64, 1...100_000), "fetches kept for their next pages"),
    SettingDefinition("fetch.pageSeconds", .integer(\.fetchPageSeconds, 60, 1...86_400), "how long they are kept"),
    SettingDefinition(
      "idempotency.keys", .integer(\.idempotencyKeys, 10_000, 1...1_000_000),
      "requests with an Idempotency-Key that are remembered"),
    SettingDefinition(
      "idempotency.bytes", .integer(\.idempotencyBytes, 16 << 20, 1 << 16...1 << 40),
      "memory for them and their answers, in bytes"),
    SettingDefinition(
      "idempotency.seconds", .integer(\.idempotencySeconds, 86_400, 1...31_536_000),
      "how long an answer is remembered for a retry"),
    SettingDefinition(
      "drain.seconds", .integer(\.drainSeconds, 8, 1...9), "how long a stop waits for streams and requests"),
  ]

  /// The setting of that name.
  static func definition(named name: String) -> SettingDefinition? { all.first { $0.name == name } }

  /// A setting that is named nearly so, for messages; at most three letters off.
  static func suggestion(for name: String) -> String? {
    let distances = all.map { (name: $0.name, distance: distance($0.name.lowercased(), name.lowercased())) }
    guard let best = distances.min(by: { $0.distance < $1.distance }), best.distance <= 3 else { return nil }
    return best.name
  }

  /// What is said about a name that is no setting.
  static func unknown(_ name: String) -> String {
    let hint = suggestion(for: name).map { "; did you mean \($0)?" } ?? "; keyway serve --print-config lists all"
    return "there is no setting \(name)\(hint)"
  }

  /// How many letters have to be put in, taken out or replaced (Levenshtein).
  private static func distance(_ left: String, _ right: String) -> Int {
    let right = Array(right)
    var row = Array(0...right.count)
    for (index, letter) in left.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for column in right.indices {
        let above = row[column + 1]
        row[column + 1] = min(above + 1, row[column] + 1, diagonal + (letter == right[column] ? 0 : 1))
        diagonal = above
      }
    }
    return row[right.count]
  }
}

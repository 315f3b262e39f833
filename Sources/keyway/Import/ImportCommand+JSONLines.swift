import CommandSupport
import KeyValueModel
import KeywayClient

/// Importing JSON lines.
extension ImportCommand {
  func importJSONLines() async throws {
    let client = try options.client(connections: ImportLimits.connections)
    var lines = try LineFile(file)
    let schema = try await ImportSchema.fetch(client)
    let reader = ObjectLineReader(schema: schema, entity: entity, idKeys: idColumns)
    var importer = ObjectImporter(
      client: client, reader: reader, limits: jsonLines.limits, conflicts: onConflict ?? .fail,
      isEmpty: try await Self.isEmpty(client))
    try await report(size: lines.size) { progress in try await importer.run(&lines, progress: progress) }
  }

  /// Whether a server has no objects, so that nobody has to ask for each.
  private static func isEmpty(_ client: Client) async throws -> Bool {
    let response = try await client.send("GET", "/v1/status")
    guard case .object(let status)? = try? Value(json: response.body) else { return false }
    return status["objects"] == .integer(0)
  }
}

internal import KeyValueModel
internal import KeywayClient
internal import OrderedCollections

/// Reads objects by the page, all of one revision, and writes them as JSON lines.
struct Exporter {
  /// What was exported.
  struct Tally: Hashable, Sendable {
    /// How many objects.
    var objects = 0
    /// The revision whose state it is.
    var revision: Int64 = 0
  }

  let client: Client
  /// The entities to export, with what extends them; none for all.
  let entities: [String]
  let schema: ImportSchema

  /// Gives each page's lines to `write`. Throws a `Problem` with the code `page-expired` where the state of the first
  /// page is no longer kept; what was written then is no export.
  func run(_ write: ([UInt8]) throws -> Void) async throws -> Tally {
    var tally = Tally()
    var page: String?
    repeat {
      try Task.checkCancellation()
      let contents = try await self.page(page)
      var bytes: [UInt8] = []
      for case .object(let object) in contents.objects {
        append(object, to: &bytes)
        tally.objects += 1
      }
      try write(bytes)
      tally.revision = contents.revision
      page = contents.next
    } while page != nil
    return tally
  }

  private func page(_ word: String?) async throws -> (objects: [Value], revision: Int64, next: String?) {
    let parameters = [("entities", entities.isEmpty ? nil : entities.joined(separator: ",")), ("page", word)]
    let path = ResourcePath.adding(parameters, to: "/v1/objects")
    let response = try await client.send("GET", path, headers: ["Accept": "application/json"])
    guard case .object(let body)? = try? Value(json: response.body, depthLimit: JSONLine.depthLimit),
      case .array(let objects)? = body["objects"], case .integer(let revision)? = body["revision"]
    else { throw CommandFailure("the server does not answer \(path) with objects") }
    guard case .string(let next)? = body["next"] else { return (objects, revision, nil) }
    return (objects, revision, next)
  }

  /// A line: what an import takes, so neither the revision nor what is computed.
  private func append(_ object: JSONObject, to bytes: inout [UInt8]) {
    var object = object
    object["@revision"] = nil
    if case .string(let text)? = object["@ref"], let entity = Reference(text)?.entity {
      for (name, key) in schema.entities[entity] ?? [:] where key.kind == .computed { object[name] = nil }
    }
    object.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "\n"))
  }
}

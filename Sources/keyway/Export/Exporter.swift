import Foundation
import KeyValueModel
import KeywayClient
import OrderedCollections

/// Reads objects by the page, all of one revision, and writes them as JSON lines.
struct Exporter {
  struct Tally: Hashable, Sendable {
    var objects = 0
    /// The revision whose state it is.
    var revision: Int64 = 0

    /// `exported 14 objects at revision 1 in 0.1 s`
    func text(seconds: Double) -> String {
      let noun = objects == 1 ? "object" : "objects"
      let count = ImportSummary.grouped(objects)
      return String(format: "exported %@ %@ at revision %@ in %.1f s", count, noun, "\(revision)", seconds)
    }
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
    guard let body = try? Value(json: response.body, depthLimit: ImportLimits.jsonDepth).asObject,
      let objects = body["objects"]?.asArray, let revision = body["revision"]?.asInteger
    else { throw CommandFailure("the server does not answer \(path) with objects") }
    return (objects, revision, body["next"]?.asString)
  }

  /// A line: what an import takes, so neither the revision nor what is computed.
  private func append(_ object: JSONObject, to bytes: inout [UInt8]) {
    var object = object
    object["@revision"] = nil
    object["@lifetime"] = nil
    if let text = object["@ref"]?.asString, let entity = Reference(text)?.entity {
      for (name, key) in schema.entities[entity] ?? [:] where key.kind == .computed { object[name] = nil }
    }
    object.appendJSON(to: &bytes)
    bytes.append(UInt8(ascii: "\n"))
  }
}

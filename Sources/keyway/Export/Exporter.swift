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
    /// How many of the objects end with a stream, which an export cannot say.
    var streamLeases = 0

    /// `exported 14 objects at revision 1 in 0.1 s`
    func text(seconds: Double) -> String {
      let noun = objects == 1 ? "object" : "objects"
      let count = ImportSummary.grouped(objects)
      return String(format: "exported %@ %@ at revision %@ in %.1f s", count, noun, "\(revision)", seconds)
    }

    /// What the lines do not say of their objects, as a remark; nil where they say everything.
    var remark: String? {
      guard streamLeases > 0 else { return nil }
      let subject = streamLeases == 1 ? "1 object ends" : "\(ImportSummary.grouped(streamLeases)) objects end"
      return "keyway: \(subject) with a stream; an import makes them without a lifetime"
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

  /// A line: what an import takes, so neither the revision nor what is computed. A lease of seconds stays; one that
  /// ends with a stream is counted, since that stream is not there for the import.
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

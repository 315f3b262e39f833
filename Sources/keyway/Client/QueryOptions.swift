import ArgumentParser
import KeywayClient

/// Options of the commands that read the objects of an entity: parameters of its URL.
struct QueryOptions: ParsableArguments {
  @Option(help: "Of an entity: only the objects that match this expression.")
  var filter: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Of an entity: the order, by key paths; -salary,name.", valueName: "key-paths"))
  var sort: String?

  @Option(
    help: ArgumentHelp(
      "Of an entity: at most this many objects; 0 for totals alone.", valueName: "objects"))
  var limit: Int?

  @Option(help: ArgumentHelp("Of an entity: sections of objects that share this value.", valueName: "key-path"))
  var section: String?

  @Option(help: ArgumentHelp("Of an entity: only these keys and key paths of the objects.", valueName: "keys"))
  var keys: String?

  @Option(
    help: ArgumentHelp(
      "Of an entity: aggregates of all objects of each section; @count,@sum.salary.", valueName: "operators"))
  var aggregate: String?

  func validate() throws {
    if let limit, limit < 0 { throw ValidationError("--limit must be at least 0") }
  }

  /// The parameters with their names. The value is nil if an option is not given.
  var parameters: [(name: String, value: String?)] {
    [
      ("filter", filter), ("sort", sort), ("limit", limit.map(String.init)), ("section", section), ("keys", keys),
      ("aggregate", aggregate),
    ]
  }

  /// Throws if one of the options is given and `resource`, at that path, is not an entity.
  func check(_ resource: String, path: String) throws {
    guard let name = parameters.first(where: { $0.value != nil })?.name, !Self.isEntity(path) else { return }
    throw ValidationError("--\(name) is for an entity, and \(resource) is not one")
  }

  /// Returns true if the path is that of the objects of an entity.
  static func isEntity(_ path: String) -> Bool { objectPath(path).count == 1 }

  /// Returns the parts of a path under `/v1/objects`: entity, id and key path. Empty for any other path.
  static func objectPath(_ path: String) -> ArraySlice<Substring> {
    let path = path.prefix { $0 != "?" }
    return path.hasPrefix("/v1/objects/") ? path.split(separator: "/").dropFirst(2) : []
  }
}

extension Client {
  /// Reports on standard error that a list of objects is requested without a token from a server that identifies its
  /// clients by tokens: its rules may then omit objects, which the list itself does not show.
  func remarkAnonymity() async {
    // Only admins may request this. On a server without keys, all clients are admins.
    guard isAnonymous, let answer = try? await request("GET", "/v1/access/revocations"), answer.status == 401 else {
      return
    }
    StandardError.line("keyway: no token was sent; the server's rules may hide objects (--token or KEYWAY_TOKEN)")
  }
}

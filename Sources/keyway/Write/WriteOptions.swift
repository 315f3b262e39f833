import ArgumentParser

/// What every command that writes takes beside what it writes.
struct WriteOptions: ParsableArguments {
  @Option(help: "The name that the events caused by this write carry.")
  var writer: String?

  /// The header fields that say so.
  var headers: [String: String] {
    var headers = ["Accept": "application/json"]
    headers["Keyway-Writer"] = writer
    return headers
  }
}

/// On which condition a command writes to what is there.
struct ConditionOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Write only if what is written to still has this ETag.", valueName: "etag"))
  var ifMatch: String?

  /// The header fields that say so.
  var headers: [String: String] { ifMatch.map { ["If-Match": Self.entityTag($0)] } ?? [:] }

  /// An entity tag with its quotation marks, which a shell likes to take away.
  static func entityTag(_ text: String) -> String {
    text == "*" || text.hasSuffix("\"") ? text : "\"\(text)\""
  }
}

/// How long an object is to last that a command writes.
struct LifetimeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Delete the object so many seconds after the last write that said so, or with a stream; none lets it stay.",
      valueName: "seconds, stream=NAME or none"))
  var lifetime: String?

  /// The header fields that say so.
  var headers: [String: String] { lifetime.map { ["Keyway-Lifetime": $0] } ?? [:] }
}

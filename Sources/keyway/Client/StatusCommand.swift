import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// Implements `keyway status`: prints the status of a server.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Prints the status of a server: its condition and revision, open streams, and memory.",
    discussion: """
      keyway status
      keyway status --json
      keyway status --server http://other:8080
      """)

  @Flag(help: "Print the response of /v1/status unchanged.")
  var json = false

  @OptionGroup var options: ClientOptions

  func run() async throws {
    let response = try await options.client().send("GET", "/v1/status", headers: ["Accept": "application/json"])
    guard !json, let status = try? Value(json: response.body).asObject else {
      return StandardOutput.text(response.text)
    }
    for line in StatusText.lines(status, server: try options.address) { StandardOutput.line(line) }
  }
}

/// Formats the status of a server as lines for people: a heading with its condition, and a line for each member.
/// Members of a member are listed under its name. Members that this version does not know are shown like all others.
enum StatusText {
  /// Returns the lines for a response of `/v1/status` from this server.
  static func lines(_ status: JSONObject, server: String) -> [StyledLine] {
    let rows = rows(status, prefix: "").filter { !["version", "draining", "store.condition"].contains($0.name) }
    let width = rows.map { TerminalText.width($0.name) }.max() ?? 0
    return [heading(status, server: server)]
      + rows.map { row in
        var line = StyledLine(TerminalText.fitted(row.name, columns: width), .dim)
        line.append("  " + row.text)
        return line
      }
  }

  private static func heading(_ status: JSONObject, server: String) -> StyledLine {
    let version = status["version"]?.plainText ?? "?"
    let condition = status["store"]?.asObject?["condition"]?.plainText ?? "?"
    let isDraining = status["draining"] == .bool(true)
    var line = StyledLine(TerminalText.clean("keyway \(version) at \(server): "))
    let word = isDraining ? "draining" : TerminalText.clean(condition)
    line.append(word, [.bold, word == "serving" ? .green : word == "unavailable" ? .red : .yellow])
    return line
  }

  private static func rows(_ members: JSONObject, prefix: String) -> [(name: String, text: String)] {
    members.members.flatMap { name, value -> [(name: String, text: String)] in
      let full = prefix + TerminalText.clean(name)
      if let inner = value.asObject { return rows(inner, prefix: full + ".") }
      return [(full, text(value, of: full))]
    }
  }

  private static func text(_ value: Value, of name: String) -> String {
    guard let integer = value.asInteger else { return TerminalText.clean(value.plainText) }
    let isBytes = name.hasPrefix("memory.") || name.hasSuffix("Bytes")
    return isBytes ? bytes(integer) : ImportSummary.grouped(Int(clamping: integer))
  }

  /// Returns a number of bytes in the largest unit of which there is at least one: `1.5 MiB`.
  static func bytes(_ count: Int64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    guard count >= 1024 else { return "\(count) B" }
    var tenths = count / 1024 * 10 + count % 1024 * 10 / 1024
    var unit = 0
    while tenths >= 10_240, unit + 1 < units.count {
      tenths /= 1024
      unit += 1
    }
    return "\(tenths / 10).\(tenths % 10) \(units[unit])"
  }
}

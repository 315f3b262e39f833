import Foundation
import KeyValueModel
import KeywayClient
import OrderedCollections

/// Formats events as lines of text, for people and for programs.
enum EventLine {
  /// Returns the event as one JSON object. Its data is JSON if it is valid JSON, else a string.
  static func json(_ event: ServerSentEvent) -> String {
    let data = (try? Value(json: event.data)) ?? .string(event.data)
    return Value.object(["event": .string(event.event), "id": .string(event.id), "data": data]).json
  }

  static func time(_ date: Date) -> String {
    var seconds = time_t(date.timeIntervalSince1970)
    var parts = tm()
    localtime_r(&seconds, &parts)
    return String(format: "%02d:%02d:%02d", parts.tm_hour, parts.tm_min, parts.tm_sec)
  }

  /// Returns the event for a person: a line for each change of a `change`, else one line.
  static func lines(_ event: ServerSentEvent) -> [String] {
    let prefix = event.id.isEmpty ? "" : event.id + " "
    guard let data = try? Value(json: event.data).asObject else {
      return ["\(prefix)\(event.event) \(event.data)"]
    }
    let suffix = data["writer"].map { " by \($0.plainText)" } ?? ""
    let clauses: [String] =
      switch event.event {
      case "change": objects(data["changes"]).map(change)
      case "results":
        results(data)
      case "content": objects(data["sectionChanges"]).map(section) + objects(data["changes"]).map(content)
      case "gone": ["\(plain(data["object"])) gone"]
      case "reset", "bye": ["\(event.event): \(plain(data["reason"]))"]
      default: ["\(event.event) \(event.data)"]
      }
    return clauses.map { prefix + $0 + suffix }
  }

  /// Returns one change: `Account/1 balance 100 → 120`.
  private static func change(_ change: JSONObject) -> String {
    var line = ["cell", "object", "keyPath"].compactMap { change[$0]?.plainText }.joined(separator: " ")
    let indexes = change["indexes"].map(\.json) ?? ""
    if change["prior"] == .bool(true) { line += " will change" }
    switch change["kind"]?.plainText {
    case "insertion": line += " +\(indexes)"
    case "removal": line += " -\(indexes)"
    case "replacement": line += " replaced\(indexes)"
    default: break
    }
    switch (change["old"], change["new"]) {
    case (let old?, let new?): line += " \(old.json) → \(new.json)"
    case (nil, let new?): line += " \(new.json)"
    case (let old?, nil): line += " \(old.json)"
    case (nil, nil): line += change["kind"].map { " (\($0.plainText))" } ?? ""
    }
    if let count = change["coalesced"] { line += " (\(count.json) changes)" }
    return line
  }

  /// Returns the rows of a live query: `2 objects: Employee/1 Employee/5`. With sections, returns a line for each.
  private static func results(_ data: JSONObject) -> [String] {
    let count = "\(data["count"]?.json ?? "?") objects"
    let names = objects(data["objects"]).map(name)
    let sections = objects(data["sections"])
    guard !sections.isEmpty else { return [count + ": " + names.joined(separator: " ")] }
    var rest = names[...]
    return ["\(count) in \(sections.count) sections"]
      + sections.map { section in
        let size = Int(clamping: max(0, section["count"]?.asInteger ?? 0))
        defer { rest = rest.dropFirst(size) }
        return "\(plain(section["name"])) (\(size)): " + rest.prefix(size).joined(separator: " ")
      }
  }

  /// Returns the insertion or deletion of a section: `insert section TX 1`.
  private static func section(_ change: JSONObject) -> String {
    let words = [change["type"], .string("section"), change["name"], change["newIndex"] ?? change["index"]]
    return words.compactMap { $0?.plainText }.joined(separator: " ")
  }

  /// Returns the change of one row of a live query: `move Employee/5 2 → 0`, with the keys that have changed.
  private static func content(_ change: JSONObject) -> String {
    var line = "\(plain(change["type"])) \(plain(change["object"]))"
    let places = [change["index"], change["newIndex"]].compactMap { $0?.json }
    if !places.isEmpty { line += " " + places.joined(separator: " → ") }
    if let reason = change["reason"] { line += " (\(reason.plainText))" }
    if let keys = change["keys"]?.asArray, let value = change["value"]?.asObject {
      for key in keys.map(\.plainText) { line += " \(key) \(value[key]?.json ?? "?")" }
    }
    return line
  }

  private static func name(_ object: JSONObject) -> String { (object["@ref"] ?? .object(object)).plainText }

  private static func plain(_ value: Value?) -> String { (value ?? .null).plainText }

  private static func objects(_ value: Value?) -> [JSONObject] {
    (value?.asArray ?? []).compactMap(\.asObject)
  }
}

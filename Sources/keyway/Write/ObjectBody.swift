import Foundation
import KeyValueModel

/// What a command line says of the keys of an object, as the body of a request.
enum ObjectBody {
  /// What `create` and `patch` take as their arguments behind the object.
  static let help = "A JSON object, key=value several times, or - for JSON on standard input."

  /// The body: of no words an object without keys, of one that begins as JSON that JSON, of others an object with a
  /// key for each `key=value`. `read` gives standard input, for `-`. Throws a `CommandFailure`.
  static func json(_ words: [String], read: () -> [UInt8] = standardInput) throws -> Value {
    if words == ["-"] { return try parsed(read(), "standard input") }
    if let first = words.first, first.hasPrefix("{") || first.hasPrefix("[") {
      guard words.count == 1 else {
        throw CommandFailure("one JSON text is written, and \(words[1]) stands behind it; put it in quotation marks")
      }
      return try parsed(Array(first.utf8), first)
    }
    var object = JSONObject()
    for word in words {
      guard let equals = word.firstIndex(of: "="), equals > word.startIndex else {
        throw CommandFailure("\(word) is neither a JSON object nor key=value")
      }
      let key = String(word[..<equals])
      guard object[key] == nil else { throw CommandFailure("\(key) is given twice") }
      object[key] = try TypedValue.value(String(word[word.index(after: equals)...]), after: key + "=")
    }
    return .object(object)
  }

  /// Returns what was typed for a key as `key=value`; nil where it was not.
  static func typed(_ key: String?, in words: [String]) -> (prefix: String, text: String)? {
    guard let key, let word = words.first(where: { $0.hasPrefix(key + "=") }) else { return nil }
    return (key + "=", String(word.dropFirst(key.count + 1)))
  }

  private static func parsed(_ bytes: [UInt8], _ name: String) throws -> Value {
    do throws(JSONError) {
      return try Value(json: bytes, depthLimit: ImportLimits.jsonDepth)
    } catch {
      throw CommandFailure("\(name) is no JSON: \(error)")
    }
  }

  static func standardInput() -> [UInt8] { [UInt8](FileHandle.standardInput.readDataToEndOfFile()) }
}

import Foundation
import KeyValueModel
import KeywayClient

/// A value on the command line: JSON, or a text without quotation marks.
enum TypedValue {
  /// The rule, for help texts.
  static let help = "A value is JSON; one that does not look like JSON is a text."

  /// Returns the value of a text. Throws a `CommandFailure` for one that begins like JSON and is invalid: taken as a
  /// text, `roles=[manager]` would not be what was meant. `prefix` is the part before it in the same argument.
  static func value(_ text: String, after prefix: String = "") throws -> Value {
    do throws(JSONError) {
      return try Value(json: Array(text.utf8), depthLimit: ImportLimits.jsonDepth)
    } catch {
      let first = text.first { !$0.isWhitespace }
      guard error.isOutOfRange || first == "{" || first == "[" || first == "\"" else { return .string(text) }
      throw CommandFailure(
        "\(prefix)\(text) looks like JSON but is not: \(error)\nhint: write a text as \(prefix)\(quoted(text))")
    }
  }

  /// Runs `body`. If the server refuses a value because its key requires a text, the error also explains how to type a
  /// text. `typed` returns the text typed for a key, with the part before it in the same argument.
  static func explainingTexts<Result>(
    _ typed: (_ key: String?) -> (prefix: String, text: String)?, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let problem as Problem where problem.detail?.contains("must be a string, not") == true {
      guard let (prefix, text) = typed(problem.keyPath) else { throw problem }
      throw CommandFailure("\(problem)\nhint: \(prefix)\(text) is JSON; write the text as \(prefix)\(quoted(text))")
    }
  }

  /// Returns a text as JSON, quoted for a shell.
  private static func quoted(_ text: String) -> String {
    "'" + Value.string(text).json.replacing("'", with: #"'\''"#) + "'"
  }
}

/// Reads the keys of an object from the command line, as the body of a request.
enum ObjectBody {
  /// The help of the arguments of `create` and `patch` after the object.
  static let help = "A JSON object, key=value several times, or - for JSON on standard input."

  /// Returns the body: an object without keys for no words, the JSON of a word that begins like JSON, or an object with
  /// a key for each `key=value`. `read` returns standard input, for `-`. Throws a `CommandFailure`.
  static func json(_ words: [String], read: () -> [UInt8] = standardInput) throws -> Value {
    if words == ["-"] { return try parsed(read(), "standard input") }
    if let first = words.first, first.hasPrefix("{") || first.hasPrefix("[") {
      guard words.count == 1 else {
        throw CommandFailure("only one JSON text is allowed, and \(words[1]) follows it; put it in quotation marks")
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

  /// Returns the text typed for a key as `key=value`, or nil if there is none.
  static func typed(_ key: String?, in words: [String]) -> (prefix: String, text: String)? {
    guard let key, let word = words.first(where: { $0.hasPrefix(key + "=") }) else { return nil }
    return (key + "=", String(word.dropFirst(key.count + 1)))
  }

  private static func parsed(_ bytes: [UInt8], _ name: String) throws -> Value {
    do throws(JSONError) {
      return try Value(json: bytes, depthLimit: ImportLimits.jsonDepth)
    } catch {
      throw CommandFailure("\(name) is not JSON: \(error)")
    }
  }

  static func standardInput() -> [UInt8] { [UInt8](FileHandle.standardInput.readDataToEndOfFile()) }
}

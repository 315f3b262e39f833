import KeyValueModel
import KeywayClient

/// A value as it is typed on a command line: JSON, or a text without quotation marks.
enum TypedValue {
  /// The rule, for the help of commands.
  static let help = "A value is JSON; one that does not look like JSON is a text."

  /// Returns the value of a text. Throws a `CommandFailure` for one that begins like JSON and is none: taken as a text,
  /// `roles=[manager]` would be something else than was meant. `prefix` is what stands before it in the same argument.
  static func value(_ text: String, after prefix: String = "") throws -> Value {
    do throws(JSONError) {
      return try Value(json: Array(text.utf8), depthLimit: ImportLimits.jsonDepth)
    } catch {
      let first = text.first { !$0.isWhitespace }
      guard error.isOutOfRange || first == "{" || first == "[" || first == "\"" else { return .string(text) }
      throw CommandFailure(
        "\(prefix)\(text) looks like JSON and is not: \(error)\nhint: a text is written \(prefix)\(quoted(text))")
    }
  }

  /// Does what `body` does. Where the server refuses a value because its key wants a text, the error also says how a
  /// text is typed. `typed` returns what was typed for a key, with what stands before it in the same argument.
  static func explainingTexts<Result>(
    _ typed: (_ key: String?) -> (prefix: String, text: String)?, _ body: () async throws -> Result
  ) async throws -> Result {
    do {
      return try await body()
    } catch let problem as Problem where problem.detail?.contains("wants a string and is") == true {
      guard let (prefix, text) = typed(problem.keyPath) else { throw problem }
      throw CommandFailure("\(problem)\nhint: \(prefix)\(text) is JSON; the text is written \(prefix)\(quoted(text))")
    }
  }

  /// A text as JSON, in quotation marks for a shell.
  private static func quoted(_ text: String) -> String {
    "'" + Value.string(text).json.replacing("'", with: #"'\''"#) + "'"
  }
}

/// How a line of the log looks.
package enum LogFormat: String, CaseIterable, Sendable {
  /// For people: `TIME LEVEL LABEL: NAME=VALUE … MESSAGE`.
  case text
  /// For programs: an object a line.
  case json
}

import Foundation
import KeyValueModel

/// What a crash test found.
struct CrashReport: Hashable, Sendable {
  var seed: UInt64
  var rounds = 0
  /// How often the server was killed before it had recovered.
  var recoveriesKilled = 0
  var endings: [CrashEnding: Int] = [:]
  var figures: CrashLedger.Figures
  var seconds = 0.0
  /// The longest time from a start to being ready.
  var slowestRecoverySeconds = 0.0
  var directory: String

  /// Whether no promise was broken.
  var isFaultless: Bool { figures.violations.isEmpty }

  /// The figures as one JSON object.
  var json: String {
    Value.object([
      "seed": .string(String(seed)), "rounds": .integer(Int64(rounds)),
      "recoveriesKilled": .integer(Int64(recoveriesKilled)),
      "drained": .integer(Int64(endings[.drained] ?? 0)), "commits": .integer(figures.commits),
      "acknowledged": .integer(Int64(figures.acknowledgements)), "foundDone": .integer(Int64(figures.found)),
      "events": .integer(Int64(figures.events)), "resets": .integer(Int64(figures.resets)),
      "seconds": .number(seconds), "slowestRecoverySeconds": .number(slowestRecoverySeconds),
      "violations": .array(figures.violations.map { .string($0) }),
    ]).json
  }

  /// The figures for a person.
  var text: String {
    var lines = figures.violations
    let kills = rounds - (endings[.drained] ?? 0)
    lines.append(
      """
      \(rounds) rounds in \(Self.text(seconds)), seed \(seed): \(kills) killed, \(endings[.drained] ?? 0) \
      drained, \(recoveriesKilled) more killed before they had recovered; \(figures.acknowledgements) writes \
      acknowledged, \(figures.found) found done without an answer; \(figures.events) events, \(figures.resets) resets; \
      slowest recovery \(Self.text(slowestRecoverySeconds))
      """)
    lines.append(isFaultless ? "no promise was broken" : "BROKEN: see above, and \(directory)")
    return lines.joined(separator: "\n")
  }

  private static func text(_ seconds: Double) -> String { String(format: "%.2f s", seconds) }
}

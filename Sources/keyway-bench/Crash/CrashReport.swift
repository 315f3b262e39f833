import Foundation
import KeyValueModel

/// What a crash test found.
struct CrashReport: BenchmarkReport {
  var seed: UInt64
  var rounds = 0
  /// How often the server was killed before it had recovered.
  var recoveriesKilled = 0
  var drained = 0
  var figures: PromiseLedger.Figures
  var seconds = 0.0
  /// The longest time from a start to being ready.
  var slowestRecoverySeconds = 0.0
  var directory: String

  /// Whether no promise was broken.
  var isFaultless: Bool { figures.violations.isEmpty }

  var json: Value {
    .object([
      "seed": .string(String(seed)), "rounds": .count(rounds), "recoveriesKilled": .count(recoveriesKilled),
      "drained": .count(drained), "commits": .count(figures.commits), "acknowledged": .count(figures.acknowledgements),
      "foundDone": .count(figures.found), "events": .count(figures.events), "resets": .count(figures.resets),
      "seconds": .number(seconds), "slowestRecoverySeconds": .number(slowestRecoverySeconds),
      "violations": .array(figures.violations.map { .string($0) }),
    ])
  }

  var text: String {
    let summary = String(
      format: """
        %d rounds in %.2f s, seed %llu: %d killed, %d drained, %d more killed before they had recovered; %d writes \
        acknowledged, %d found done without an answer; %d events, %d resets; slowest recovery %.2f s
        """, rounds, seconds, seed, rounds - drained, drained, recoveriesKilled, figures.acknowledgements,
      figures.found, figures.events, figures.resets, slowestRecoverySeconds)
    let verdict = isFaultless ? "no promise was broken" : "BROKEN: see above, and \(directory)"
    return (figures.violations + [summary, verdict]).joined(separator: "\n")
  }
}

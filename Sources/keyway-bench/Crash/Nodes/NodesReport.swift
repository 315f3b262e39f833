import Foundation
import KeyValueModel

/// What a crash test of several nodes found.
struct NodesReport: BenchmarkReport {
  var plan: NodesPlan
  var rounds = 0
  /// By kind, how often something was done to a node.
  var faults: [String: Int] = [:]
  /// How many answers of the database to appends were lost.
  var lostAnswers = 0
  var figures = RegisterLedger.Figures()
  /// Writes without an answer that were found done.
  var found = 0
  var events = 0
  /// How often a stream was opened again.
  var moves = 0
  /// Histories of one register that were judged, and those of them that the checker gave up on.
  var histories = 0
  var undecided = 0
  var seconds = 0.0
  var violations: [String] = []

  var isFaultless: Bool { violations.isEmpty }

  var json: Value {
    .object([
      "kind": .string(plan.kind.rawValue), "nodes": .count(plan.nodes), "seed": .string(String(plan.seed)),
      "rounds": .count(rounds), "faults": .count(faults.values.reduce(0, +)), "killed": .count(faults["killed"] ?? 0),
      "restarted": .count(faults["restarted"] ?? 0), "stopped": .count(faults["stopped"] ?? 0),
      "cut": .count(faults["cut"] ?? 0), "databaseKilled": .count(faults["databaseKilled"] ?? 0),
      "failedOver": .count(faults["failedOver"] ?? 0), "isolated": .count(faults["isolated"] ?? 0),
      "lostAnswers": .count(lostAnswers),
      "acknowledged": .count(figures.acknowledged), "refused": .count(figures.refused),
      "unknown": .count(figures.open), "foundDone": .count(found), "reads": .count(figures.reads),
      "events": .count(events), "moves": .count(moves), "histories": .count(histories),
      "undecided": .count(undecided), "seconds": .number(seconds),
      "violations": .array(violations.map { .string($0) }),
    ])
  }

  var text: String {
    let list = faults.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    let summary = String(
      format: """
        %d rounds of %d %@ in %.2f s, seed %llu; faults: %@; %d answers of a database lost; %d writes acknowledged, \
        %d refused, %d without an answer, of which %d were done; %d reads; %d events on streams opened %d times; \
        %d histories of registers judged, %d undecided
        """, rounds, plan.nodes, plan.kind.rawValue, seconds, plan.seed, list.isEmpty ? "none" : list,
      lostAnswers, figures.acknowledged, figures.refused, figures.open, found, figures.reads, events, moves, histories,
      undecided)
    let verdict = isFaultless ? "no promise was broken" : "BROKEN: see above, and \(plan.directory)"
    return (violations + [summary, verdict]).joined(separator: "\n")
  }
}

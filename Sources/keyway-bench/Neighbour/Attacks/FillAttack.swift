import Support
import TestKit

/// Fills the store until it is refused, makes some room, and goes on.
struct FillAttack: Attack {
  let name = "filling"
  let summary = "puts objects of 1 MB until it is refused, nested arrays among them, deletes some, and goes on"

  /// One refusal in so many is followed by deletions, of so many objects.
  private static let patience = 4
  private static let deletions = 3

  private struct Progress {
    var next = 0
    var taken: [Int] = []
  }

  private let progress = Locked(Progress())

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    let number = progress.withLock { progress in
      progress.next += 1
      return progress.next
    }
    let body = Self.bodies[number % Self.bodies.count]
    if neighbour.send(.setting(Self.path(number), body)) == 201 {
      return progress.withLock { $0.taken.append(number) }
    }
    guard Int.random(in: 0..<Self.patience, using: &random) == 0 else { return }
    for _ in 0..<Self.deletions {
      guard let number = progress.withLock({ $0.taken.popLast() }) else { return }
      neighbour.send(WireRequest("DELETE", Self.path(number)))
    }
  }

  private static func path(_ number: Int) -> String { "/v1/objects/Big/f\(number)" }

  /// Bodies of nearly a megabyte: a text, lists and objects that take many times as much memory, and many members.
  private static let bodies = [
    "{\"text\":\"\(String(repeating: "x", count: NeighbourWorld.longText))\"}",
    "{\"data\":[\(Array(repeating: "[]", count: 330_000).joined(separator: ","))]}",
    "{\"data\":[\(Array(repeating: "{}", count: 330_000).joined(separator: ","))]}",
    "{\"data\":{\((0..<60_000).map { "\"k\($0)\":\($0)" }.joined(separator: ","))}}",
  ]
}

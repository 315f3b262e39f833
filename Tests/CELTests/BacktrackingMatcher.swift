
@testable import CEL

/// Matches by trying all ways: slow and plain.
struct BacktrackingMatcher {
  private let scalars: [Unicode.Scalar]

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  /// Whether any part of the text matches.
  func matches(_ node: RegexNode) -> Bool { (0...scalars.count).contains { !ends(node, from: $0).isEmpty } }

  /// Where a match that begins at `start` may end.
  private func ends(_ node: RegexNode, from start: Int) -> Set<Int> {
    switch node {
    case .set(let set):
      return start < scalars.count && set.contains(scalars[start]) ? [start + 1] : []
    case .assertion(let assertion):
      let previous = start > 0 ? scalars[start - 1] : nil
      return assertion.holds(previous, start < scalars.count ? scalars[start] : nil) ? [start] : []
    case .sequence(let parts):
      return parts.reduce([start]) { starts, part in Set(starts.flatMap { ends(part, from: $0) }) }
    case .alternatives(let branches): return Set(branches.flatMap { ends($0, from: start) })
    case .repetition(let inner, let from, let through):
      var current: Set<Int> = [start]
      for _ in 0..<from { current = Set(current.flatMap { ends(inner, from: $0) }) }
      var all = current
      // More repetitions than characters find nothing new.
      for _ in 0..<min((through ?? .max) - from, scalars.count + 1) {
        current = Set(current.flatMap { ends(inner, from: $0) })
        all.formUnion(current)
      }
      return all
    }
  }
}

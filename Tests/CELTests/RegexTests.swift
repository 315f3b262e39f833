import TestKit
import Testing

@testable import CEL

@Suite("Regular expressions")
struct RegexTests {
  private static func matches(_ pattern: String, _ text: String) throws -> Bool {
    var budget = EvaluationBudget(ExpressionLimits())
    return try RegexMachine.matches(try RegexProgram(pattern), text, &budget)
  }

  @Test(
    "A pattern matches",
    arguments: [
      ("^a.c$", "abc"), ("a.c", "xaécx"), ("[a-c]+", "xxb"), ("[^a-c]", "abcd"), ("\\d{3}-\\d{2}", "tel 123-45"),
      ("(?i)straße", "STRAßE"),
      ("(?i)é", "É"), ("(?i)[a-z]+é", "XÉ"), ("(?s)a.b", "a\nb"), ("(?m)^b$", "a\nb\nc"), ("\\bfoo\\b", "a foo b"),
      ("\\Boo", "foo"),
      ("\\Aab\\z", "ab"), ("a{2,3}", "caab"), ("x{,2}", "x{,2}"), ("a{", "a{"), ("[]a]", "]"), ("[a\\]]", "]"),
      ("[-a]", "-"), ("[a-]", "-"),
      ("\\x41\\x{1F431}", "A🐱"), ("\\p{Lu}\\pL", "Éa"), ("\\PL", "1"), ("\\p{^Lu}", "a"),
      ("[[:alpha:]]+[[:^digit:]]", "ab"),
      ("\\Qa.b\\E+", "a.bb"), ("(?P<n>a)(?<m>b)(?:c)", "abc"), ("(?i:a)b", "Ab"), ("a|b|", "z"), ("(a|)+$", "aa"),
      ("(a*)*b", "aab"), ("(a*?)b", "aab"),
      ("\\.\\-\\/", ".-/"), ("[\\d\\s]x", " x"), ("[^\\D]", "5"), ("\\101", "A"), ("[\\n]", "\n"), ("()", ""),
      ("a?b??", ""), ("[😀-😂]", "😁"),
    ])
  func match(_ pattern: String, _ text: String) throws { #expect(try RegexTests.matches(pattern, text)) }

  @Test(
    "A pattern does not match",
    arguments: [
      ("^a.c$", "a\nc"), ("^b$", "a\nb"), ("\\bfoo", "afoo"), ("(?i:a)b", "AB"), ("(?i)a(?-i)b", "AB"),
      ("((?i)a)b", "aB"), ("a{3}", "aa"), ("[^a]", "a"),
      ("\\d", "٣"), ("\\w", "é"), ("^$", "a"), ("a\\z", "a\n"), ("(?-s).", "\n"), ("[a-c]", "d"), ("x+", ""),
    ])
  func mismatch(_ pattern: String, _ text: String) throws { #expect(try !RegexTests.matches(pattern, text)) }

  @Test(
    "All of Unicode counts in named sets, their opposites, brackets and word boundaries",
    arguments: [
      ("^\\w+$", "né_9", true), ("^\\W$", "é", false), ("^[^\\W\\d]+$", "é", true), ("^[^\\W\\d]+$", "٣", false),
      ("^\\d$", "٣", true), ("^[\\D]$", "٣", false), ("^\\s\\S$", "\u{A0}é", true), ("^[\\S]$", "\u{A0}", false),
      ("\\bb", "éb", false), ("é\\Bb", "éb", true), ("^[\\w.]+$", "é.", true),
    ])
  func unicode(_ pattern: String, _ text: String, _ isMatch: Bool) throws {
    #expect(try RegexProgram(pattern, isUnicode: true).matches(text) == isMatch)
  }

  @Test("A pattern that lets other engines try again and again is matched at once")
  func linear() throws {
    let text = String(repeating: "a", count: 20_000)
    #expect(try !RegexProgram("^(a+)+$", isUnicode: true).matches(text + "b"))
    #expect(try RegexProgram("(x+x+)+y|(a|a)*$", isUnicode: true).matches(text))
  }

  @Test(
    "A pattern that is none is refused",
    arguments: [
      "(", ")", "a**", "*a", "[a", "[b-a]", "a{2,1}", "a{1001}", "\\", "\\q", "\\1", "(?z)", "(?P<>a)", "[[:no:]]",
      "\\p{Nope}", "\\x4", "(?=a)", "a|*", "(?<!a)b", "\\C",
    ])
  func refused(_ pattern: String) { #expect(throws: RegexError.self) { try RegexProgram(pattern) } }

  @Test("Random patterns match what a backtracking matcher matches")
  func oracle() throws {
    print("KEYWAY_TEST_SEED=\(seed)")
    var random = SplitMix64(seed: seed)
    for _ in 0..<4_000 {
      let pattern = RegexTests.pattern(&random, 3)
      var parser = RegexParser(pattern, isUnicode: false)
      let node = try parser.parse()
      let program = try RegexProgram(pattern)
      for _ in 0..<4 {
        let text = String(
          (0..<Int.random(in: 0...6, using: &random)).map { _ in
            ["a", "b", "c", "\n"].randomElement(using: &random) ?? "a"
          })
        var budget = EvaluationBudget(ExpressionLimits())
        let expected = BacktrackingMatcher(text).matches(node)
        #expect(try RegexMachine.matches(program, text, &budget) == expected, "\(pattern) on \(text.debugDescription)")
      }
    }
  }

  private static func pattern(_ random: inout SplitMix64, _ depth: Int) -> String {
    let atoms = ["a", "b", "c", ".", "[ab]", "[^a]", "^", "$", "\\b", "", "(?m:^)", "(?i:A)", "\\w"]
    guard depth > 0 else { return atoms.randomElement(using: &random) ?? "a" }
    switch Int.random(in: 0..<5, using: &random) {
    case 0: return atoms.randomElement(using: &random) ?? "a"
    case 1: return pattern(&random, depth - 1) + pattern(&random, depth - 1)
    case 2: return "(\(pattern(&random, depth - 1))|\(pattern(&random, depth - 1)))"
    default:
      let suffix = ["*", "+", "?", "{2}", "{1,2}", "{0,1}", "*?", "{1,}"].randomElement(using: &random) ?? "*"
      return "(\(pattern(&random, depth - 1)))\(suffix)"
    }
  }
}

/// A matcher that tries all ways to match: slow and simple.
struct BacktrackingMatcher {
  private let scalars: [Unicode.Scalar]

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  /// Returns true if any part of the text matches.
  func matches(_ node: RegexNode) -> Bool { (0...scalars.count).contains { !ends(node, from: $0).isEmpty } }

  /// Returns the positions at which a match that begins at `start` may end.
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
      // More repetitions than there are characters find nothing new.
      for _ in 0..<min((through ?? .max) - from, scalars.count + 1) {
        current = Set(current.flatMap { ends(inner, from: $0) })
        all.formUnion(current)
      }
      return all
    }
  }
}

import Foundation
import Testing

@testable import CEL

@Suite("The language's own conformance tests")
struct ConformanceTests {
  private static let files = [
    "basic", "comparisons", "conversions", "fields", "fp_math", "integer_math", "lists", "logic", "macros", "namespace",
    "parse", "plumbing", "string", "timestamps", "string_ext",
  ]

  /// The functions of the math extension that are supported.
  private static let mathFunctions: Set<Substring> = ["round", "ceil", "floor", "trunc", "abs"]

  /// The tests of the math extension that call no other functions.
  private static func mathCases(in directory: URL) throws -> [ConformanceCase] {
    try cases("math_ext", in: directory).filter { test in
      test.text.matches(of: /math\.(\w+)/).allSatisfy { mathFunctions.contains($0.1) }
    }
  }

  /// Tests that fail, with the reason.
  private static let failing: [String: String] = [:]

  /// `../shared/cel` of the repository; nil if it does not exist.
  private static var directory: URL? {
    let root = URL(fileURLWithPath: #filePath).resolvingSymlinksInPath().deletingLastPathComponent()
    let directory = root.appendingPathComponent("../../../shared/cel").standardized
    return FileManager.default.fileExists(atPath: directory.path) ? directory : nil
  }

  private static func cases(_ file: String, in directory: URL) throws -> [ConformanceCase] {
    let text = try String(contentsOf: directory.appendingPathComponent("\(file).jsonl"), encoding: .utf8)
    return try text.split(separator: "\n").compactMap { try ConformanceCase(file: file, line: $0) }
  }

  /// Describes how a test's outcome differs from the expected one; nil if it does not.
  private static func fault(_ test: ConformanceCase) -> String? {
    let bindings = Bindings(test.bindings)
    let outcome: String
    do {
      let expression = try Expression(parsing: test.text)
      let checked = try test.isUnchecked ? expression.unchecked(in: bindings) : expression.checked(in: bindings)
      var budget = EvaluationBudget(ExpressionLimits())
      switch checked.evaluate(bindings, budget: &budget) {
      case .success(let value): outcome = Canonical.text(value)
      case .failure(let error): return test.expected == nil ? nil : "\(test.id): \(test.text): \(error)"
      }
    } catch {
      return "\(test.id): \(test.text): \(error)"
    }
    return outcome == test.expected ? nil : "\(test.id): \(test.text): \(outcome), not \(test.expected ?? "an error")"
  }

  @Test(
    "Every test of the standard language and of the strings and math extensions passes, but for those that are listed")
  func standard() throws {
    guard let directory = ConformanceTests.directory else {
      print("Skipped: ../shared/cel is not there")
      return
    }
    var (passed, total) = (0, 0)
    let standard = try ConformanceTests.files.flatMap { try ConformanceTests.cases($0, in: directory) }
    for test in try standard + ConformanceTests.mathCases(in: directory) {
      total += 1
      let fault = ConformanceTests.fault(test)
      if fault == nil { passed += 1 }
      let isListed = ConformanceTests.failing[test.id] != nil
      #expect((fault != nil) == isListed, "\(fault ?? "\(test.id) passes and is listed as failing")")
    }
    print("Conformance: \(passed) of \(total) tests pass")
    #expect(total == 1_314)
  }
}

import Foundation

/// Where things are: the checkout, and what was built of it.
enum PackageFolder {
  /// The root of the checkout.
  static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path

  /// The program under test, which lies beside the test bundle that is running.
  static let keyway = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
    .appendingPathComponent("keyway").path

  /// The program that measures it and kills it, beside both.
  static let keywayBench = keyway + "-bench"

  /// The Python of the tests: see the README's test command.
  static let python = root + "/.build/python/bin/python"

  /// One of the scripts beside these tests.
  static func script(_ name: String) -> String { root + "/Tests/IntegrationTests/Scripts/" + name }

  static let schema = root + "/Config/example/schema.yaml"
  static let seed = root + "/Config/example/objects.jsonl"
  static let stocks = root + "/Config/example/stocks.csv"
  static let airports = root + "/Config/example/airports.csv"
}

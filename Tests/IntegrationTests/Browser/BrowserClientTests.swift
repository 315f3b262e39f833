import Foundation
import TestKit
import Testing

@Suite("The browser client")
struct BrowserClientTests {
  private static let folder = PackageFolder.root + "/Sources/KeywayBrowser/Resources"

  private static func variable(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

  /// The environment of the scripts: this run's seed, and the copy of the module to test, if it is not the project's.
  private static let environment: [String: String] = [
    "KEYWAY_SEED": "\(seed % 1_000_000_000)", "KEYWAY_MODULE": variable("KEYWAY_MODULE") ?? "",
    "KEYWAY_ROUNDS": variable("KEYWAY_BROWSER_ROUNDS") ?? "1",
  ]

  @Test("It is a module of at most 13 kB as it is served, compressed")
  func size() throws {
    let size = try ChildProcess.run("/bin/sh", ["-c", "gzip -6 -c \(Self.folder)/keyway.js | wc -c"])
    let bytes = try #require(Int(size.output.trimmingCharacters(in: .whitespacesAndNewlines)))
    #expect(bytes > 1000 && bytes <= 13_000)
  }

  @Test("Its types say what a page may write, and a compiler agrees")
  func types() throws {
    let scratch = try ScratchDirectory()
    try FileManager.default.copyItem(atPath: Self.folder + "/keyway.d.ts", toPath: scratch.path + "/keyway.d.ts")
    try FileManager.default.copyItem(atPath: PackageFolder.script("browser/use.ts"), toPath: scratch.path + "/use.ts")
    let compiler = try ChildProcess.start(
      "/usr/bin/tsc",
      [
        "--noEmit", "--strict", "--target", "ES2022", "--module", "ES2022", "--moduleResolution", "node", "--lib",
        "ES2022,DOM", scratch.path + "/use.ts",
      ])
    #expect(try compiler.exitStatus() == 0, "\(compiler.output)")
  }

  @Test(
    "Its parts do what a naive oracle does, without a browser: the parser, the stream, what is observed, tabs",
    arguments: ["parser", "line", "tabs", "writes"])
  func parts(_ name: String) throws {
    let script = PackageFolder.script("browser/\(name).test.mjs")
    let tests = try ChildProcess.start("/usr/bin/node", ["--test", script], environment: Self.environment)
    #expect(try tests.exitStatus() == 0, "\(tests.output)")
  }

  @Test("Three tabs of one stream show what is there, over cuts, kills, frozen and closed tabs, and a wiped store")
  func tabs() throws {
    let steps = Self.variable("KEYWAY_BROWSER_STEPS") ?? "40"
    let arguments = [PackageFolder.keyway, Self.environment["KEYWAY_SEED"] ?? "1", steps]
    try run("client.py", arguments)
  }

  @Test("Elements show text alone, end with their element, and are invisible cells out of sight")
  func elements() throws { try run("elements.py", [PackageFolder.keyway]) }

  @Test("A page that the browser keeps for Back has no stream meanwhile, and shows what there is when it is back")
  func back() throws { try run("back.py", [PackageFolder.keyway]) }

  private func run(_ script: String, _ arguments: [String]) throws {
    let browser = try ChildProcess.start(
      PackageFolder.python, [PackageFolder.script("browser/" + script)] + arguments, environment: Self.environment)
    #expect(try browser.exitStatus() == 0, "\(browser.output)\n\(browser.errors)")
    #expect(browser.output.contains("all is shown as it is"))
  }
}

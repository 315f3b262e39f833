import Foundation
import TestKit
import Testing

/// Runs the examples of the pages about clients in other languages, each page as one session with a server of the
/// example.
@Suite("The pages about clients") struct ClientPageTests {
  private let server: ServerProcess
  private let folder: ScratchDirectory

  init() throws {
    folder = try ScratchDirectory()
    server = try ServerProcess("--public", folder.path)
  }

  private func page(_ name: String) throws -> String {
    let path = PackageFolder.root + "/Sources/keyway/Documentation.docc/\(name).md"
    return try String(contentsOfFile: path, encoding: .utf8)
  }

  private func addressed(_ text: String) -> String {
    text.replacing("127.0.0.1:8080", with: "127.0.0.1:\(server.port)")
  }

  /// Returns the blocks of a language, without their fences.
  private static func blocks(_ language: String, of page: String) -> [String] {
    page.components(separatedBy: "```\(language)\n").dropFirst().map { $0.components(separatedBy: "\n```")[0] + "\n" }
  }

  @Test("Every command of the page about curl prints what the page says", .timeLimit(.minutes(60)))
  func curl() throws {
    let steps = ConsoleStep.blocks(of: try page("CurlClient"), behind: "curl").flatMap(\.self)
    #expect(steps.count > 15)
    let outputs = try ConsoleStep.run(steps.map { addressed($0.command) })
    for (step, output) in zip(steps, outputs) {
      let shown = output.isEmpty || output.hasSuffix("\n") ? output : output + "\n"
      #expect(shown == step.output, "$ \(step.command)")
    }
    #expect(outputs.count == steps.count, "the session stops after: $ \(steps[max(0, outputs.count - 1)].command)")
  }

  @Test("The Python of its page runs as one program, and prints what the page says", .timeLimit(.minutes(60)))
  func python() throws {
    let page = try page("PythonClient")
    let program = addressed(Self.blocks("python", of: page).joined(separator: "\n\n"))
    let folder = try ScratchDirectory()
    let child = try ChildProcess.start(PackageFolder.python, [try folder.write(program, to: "page.py")])
    #expect(try child.exitStatus() == 0, "\(child.errors)")
    #expect(child.output == Self.blocks("text", of: page).joined())
  }

  @Test("The loop of the Python page keeps the pause that the server asks for, and outlives a restart")
  func pythonLoop() throws {
    let block = try #require(Self.blocks("python", of: try page("PythonClient")).first { $0.contains("def changes(") })
    let end = try #require(block.range(of: "\n\nfollowing = "))
    let client = "import httpx\n\nkeyway = httpx.Client(base_url=\"SERVER\", timeout=30)\n"
    let folder = try ScratchDirectory()
    let file = try folder.write(client + block[..<end.lowerBound] + "\n", to: "loop.py")
    let child = try ChildProcess.start(PackageFolder.python, [PackageFolder.script("following.py"), file])
    #expect(try child.exitStatus(within: 60) == 0, "\(child.errors)")
    #expect(
      child.output.split(separator: "\n") == [
        "change 1", "change 2", "pause 0.007", "pause 0.007", "pause 0.007", "refused 404", "None k-2 k-2 k-2 k-9",
      ])
  }

  @Test("In a browser, each part of the page about its client shows what the page says", .timeLimit(.minutes(60)))
  func browser() throws {
    let page = try page("BrowserClient")
    let consoleOnPage =
      "<pre></pre><script>console.log = (...all) => "
      + "document.querySelector('pre').append(all.join(' ') + '\\n')</script>"
    let modules = Self.blocks("js", of: page).map { "\(consoleOnPage)<script type=module>\n\($0)</script>" }
    let pages = modules + Self.blocks("html", of: page)
    let outputs = Self.blocks("text", of: page)
    try #require(modules.count == 4 && pages.count == outputs.count)
    var arguments = [PackageFolder.script("client_page.py")]
    for (number, (html, output)) in zip(pages, outputs).enumerated() {
      _ = try folder.write("<!doctype html><meta charset=utf-8>\n\(html)", to: "\(number).html")
      arguments.append("\(server.url)/\(number).html=\(output.split(separator: "\n").count)")
    }
    let browser = try ChildProcess.start(PackageFolder.python, arguments)
    #expect(try browser.exitStatus() == 0, "\(browser.errors)")
    #expect(browser.output == outputs.joined())
  }
}

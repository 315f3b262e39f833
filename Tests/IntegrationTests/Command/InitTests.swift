import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("keyway init") struct InitTests {
  @Test("It writes a schema and a configuration that a server starts with, in the folder that it names")
  func starting() throws {
    let folder = try ScratchDirectory()
    let made = try ChildProcess.keyway("init", folder.file("todo"))
    #expect(made.status == 0, "\(made.errors)")
    #expect(made.output.hasSuffix("cd \(folder.file("todo")) && keyway serve\n"))
    #expect(try ChildProcess.keyway("check", folder.file("todo/schema.yaml")).status == 0)
    let child = try ChildProcess.start(
      PackageFolder.keyway, ["serve", "--port", "0"], folder: folder.file("todo"))
    func servedURL() -> String? { child.errors.firstMatch(of: /url=(http:\S+)/).map { String($0.1) } }
    #expect(Deadline().awaits { servedURL() != nil || !child.isRunning })
    let url = try #require(servedURL(), "\(child.errors)")
    #expect(child.errors.contains("configuration file=keyway.yaml from=\"the current folder\"\n"), "\(child.errors)")
    func keyway(_ arguments: String...) throws -> String {
      let outcome = try ChildProcess.run(PackageFolder.keyway, arguments + ["--server", url])
      #expect(outcome.status == 0, "\(outcome.errors)")
      return outcome.output
    }
    _ = try keyway("create", "List/home", "name=At home")
    _ = try keyway("create", "Item/1", "text=Dishes", "list=List/home")
    #expect(try keyway("get", "List/home", "open") == "1\n")
    _ = try keyway("set", "Item/1", "done", "true")
    #expect(try keyway("get", "List/home", "open") == "0\n")
    child.send(SIGTERM)
    #expect(try child.exitStatus() == 0)
    #expect(FileManager.default.fileExists(atPath: folder.file("todo/keyway-data")))
    let verified = try ChildProcess.start(PackageFolder.keyway, ["store", "verify"], folder: folder.file("todo"))
    #expect(try verified.exitStatus() == 0 && verified.output.contains("revision 3"), "\(verified.output)")
  }

  @Test("Without a configuration the example is served, in any folder")
  func example() throws {
    let folder = try ScratchDirectory()
    let child = try ChildProcess.start(PackageFolder.keyway, ["serve", "--port", "0"], folder: folder.path)
    let serving = /schema=example store=keyway-data\/example url=(http:\S+)/
    func served() -> Substring? { child.errors.firstMatch(of: serving)?.1 }
    #expect(Deadline().awaits { served() != nil || !child.isRunning })
    let url = try #require(served().map(String.init), "\(child.errors)")
    let name = try ChildProcess.keyway("get", "Account/1", "owner.lastName", "--server", url)
    #expect(name.output == "\"Lovelace\"\n", "\(name.errors)")
    child.send(SIGTERM)
    #expect(try child.exitStatus(within: 20) == 0)
    #expect(FileManager.default.fileExists(atPath: folder.file("keyway-data/example")))
  }

  @Test("If one of the files exists, none is written", arguments: ["schema.yaml", "keyway.yaml"])
  func existing(_ name: String) throws {
    let folder = try ScratchDirectory()
    try folder.write("mine", to: name)
    let refused = try ChildProcess.keyway("init", folder.path)
    #expect(refused.status == 1)
    #expect(refused.errors.contains("\(name): already exists; nothing was written"), "\(refused.errors)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [name])
    #expect(try String(contentsOfFile: folder.file(name), encoding: .utf8) == "mine")
  }
}

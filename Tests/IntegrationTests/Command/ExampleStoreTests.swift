import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("The store that a server has by default") struct ExampleStoreTests {
  private let folder: ScratchDirectory

  init() throws {
    folder = try ScratchDirectory()
    try FileManager.default.createSymbolicLink(
      atPath: folder.file("Config"), withDestinationPath: PackageFolder.root + "/Config")
    try folder.write("entities: { Book: { keys: { title: { type: string } } } }\n", to: "books.yaml")
  }

  /// Runs `keyway` in the folder to its end.
  private func keyway(_ arguments: String...) throws -> (status: Int32, output: String, errors: String) {
    let child = try ChildProcess.start(PackageFolder.keyway, arguments, folder: folder.path)
    let status = try child.exitStatus()
    return (status, child.output, child.errors)
  }

  /// Starts a server in the folder and stops it. Returns its entities and the number of its objects.
  private func serve(_ arguments: String...) throws -> (entities: [String], objects: Int?) {
    let child = try ChildProcess.start(
      PackageFolder.keyway, ["serve", "--port", "0"] + arguments, folder: folder.path)
    func url() -> String? { child.errors.firstMatch(of: /url=http:\/\/127.0.0.1:([0-9]+)/).map { String($0.1) } }
    #expect(Deadline().awaits { url() != nil || !child.isRunning })
    let port = try #require(url().flatMap { UInt16($0) }, "\(child.errors)")
    let client = WireClient(port: port)
    let entities = try client.json("/v1/entities")["$defs"].names
    let objects = try client.json("/v1/status")["objects"].whole
    child.send(SIGTERM)
    #expect(try child.exitStatus() == 0)
    return (entities, objects)
  }

  private func isStore(_ name: String) -> Bool {
    FileManager.default.fileExists(atPath: folder.file("\(name)/journal.sqlite"))
  }

  @Test("A first schema of one's own meets nothing of the example, nor the example anything of it")
  func apart() throws {
    #expect(try serve().objects == 23)
    #expect(isStore("keyway-data/example") && !isStore("keyway-data"))
    #expect(try keyway("store", "verify").status == 0)
    let books = try serve("--schema", "books.yaml")
    #expect(books.entities == ["Book"] && books.objects == 0)
    #expect(isStore("keyway-data"))
    #expect(try serve().objects == 23)
    let unclear = try keyway("store", "verify")
    #expect(unclear.status == 1 && unclear.errors.contains("name one with --store"), "\(unclear.errors)")
    for store in ["keyway-data", "keyway-data/example"] {
      #expect(try keyway("store", "verify", "--store", store).status == 0, "\(store)")
    }
  }

  @Test("A store that an earlier version began for the example goes on, and another schema is told of --store")
  func earlier() throws {
    #expect(try serve("--store", "keyway-data").objects == 23)
    #expect(try serve().objects == 23)
    #expect(!isStore("keyway-data/example"))
    let refused = try keyway("serve", "--port", "0", "--schema", "books.yaml")
    #expect(refused.status == 1)
    #expect(refused.errors.contains("keyway serve --store OTHER"), "\(refused.errors)")
  }
}

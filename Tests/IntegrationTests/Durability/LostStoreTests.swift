import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("Lost files of a store, while a server runs and between two servers")
struct LostStoreTests {
  private static let schema = "entities:\n  Note:\n    keys:\n      text: { type: string }\n"

  private func server(_ folder: ScratchDirectory, store: String = "store") throws -> DurableServer {
    try DurableServer(schema: folder.write(Self.schema, to: "schema.yaml"), store: folder.file(store))
  }

  private func put(_ number: Int, _ server: DurableServer) throws -> WireResponse {
    try server.client.send("PUT", "/v1/objects/Note/\(number)", body: #"{"text":"\#(number)"}"#)
  }

  private func serve(_ folder: ScratchDirectory, store: String = "store") throws -> (status: Int32, errors: String) {
    let result = try ChildProcess.keyway(
      "serve", "--port", "0", "--schema", folder.file("schema.yaml"), "--store", folder.file(store))
    return (result.status, result.errors)
  }

  /// Returns the number of occurrences of a text in the server's log.
  private func count(_ text: String, in server: DurableServer) -> Int {
    server.process.child.errors.components(separatedBy: text).count - 1
  }

  @Test("With its folder removed the server takes no writes and is not ready, says so once, and goes on reading")
  func removed() throws {
    let folder = try ScratchDirectory()
    let server = try server(folder)
    #expect(try put(1, server).status == 201)
    try FileManager.default.removeItem(atPath: folder.file("store"))
    for _ in 0..<5 {
      let refused = try put(2, server)
      #expect(refused.status == 503 && refused.problem == "store-unavailable", "\(refused.text)")
      #expect(!refused.text.contains(folder.path), "\(refused.text)")
    }
    #expect(try server.client.send("GET", "/readyz").status == 503)
    #expect(try server.client.send("GET", "/v1/objects/Note/1").status == 200)
    #expect(try server.client.send("GET", "/v1/objects/Note/2").status == 404)
    #expect(Deadline().awaits { count("the store takes no writes", in: server) == 1 })
    #expect(!FileManager.default.fileExists(atPath: folder.file("store")))
  }

  @Test("It is noticed without a write, and so is its return, after which nothing that was answered is missing")
  func movedAndBack() throws {
    let folder = try ScratchDirectory()
    let server = try server(folder)
    #expect(try put(1, server).status == 201)
    try FileManager.default.moveItem(atPath: folder.file("store"), toPath: folder.file("aside"))
    #expect(try Deadline().awaits { try server.client.send("GET", "/readyz").status == 503 })
    #expect(try put(2, server).status == 503)
    try FileManager.default.moveItem(atPath: folder.file("aside"), toPath: folder.file("store"))
    #expect(try Deadline().awaits { try server.client.send("GET", "/readyz").status == 200 })
    #expect(try put(3, server).status == 201)
    #expect(Deadline().awaits { count("ended: the store takes no writes", in: server) == 1 })
    #expect(count(": the store takes no writes", in: server) == 2)
    try server.restart()
    #expect(try server.revision == 2)
    #expect(try server.client.send("GET", "/v1/objects/Note/2").status == 404)
  }

  @Test("With the lock file removed a second server is refused, and backup and verify work beside the first")
  func secondServer() throws {
    let folder = try ScratchDirectory()
    let server = try server(folder)
    #expect(try put(1, server).status == 201)
    try FileManager.default.removeItem(atPath: folder.file("store/lock"))
    for _ in 0..<2 {
      let second = try serve(folder)
      #expect(second.status != 0 && second.errors.contains("in use"), "\(second.errors)")
    }
    let verify = try ChildProcess.keyway("store", "verify", "--store", folder.file("store"))
    #expect(verify.status == 0, "\(verify.output)")
    let backup = try ChildProcess.keyway("store", "backup", folder.file("b"), "--store", folder.file("store"))
    #expect(backup.status == 0, "\(backup.errors)")
    #expect(try put(2, server).status == 201)
    try server.restart()
    #expect(try server.revision == 2)
  }

  @Test("A reader in another process, since before the first write, hinders no write and no stop")
  func reader() throws {
    let folder = try ScratchDirectory()
    let server = try server(folder)
    let script = """
      import sqlite3, sys, time
      db = sqlite3.connect('file:\(folder.file("store/journal.sqlite"))?mode=ro', uri=True, isolation_level=None)
      db.execute('BEGIN')
      print(db.execute('SELECT count(*) FROM record').fetchone(), flush=True)
      time.sleep(600)
      """
    let reader = try ChildProcess.start(PackageFolder.python, ["-c", script])
    #expect(Deadline().awaits { reader.output.contains("(0,)") }, "\(reader.errors)")
    for number in 0..<5 { #expect(try put(number, server).status == 201) }
    #expect(try server.client.send("GET", "/readyz").status == 200)
    #expect(try server.end(SIGTERM) == 0)
    try server.start()
    #expect(try server.revision == 5)
    reader.send(SIGKILL)
  }

  @Test("A copy of the database alone is whole after a clean stop, and refused with advice before it")
  func copies() throws {
    let folder = try ScratchDirectory()
    let server = try server(folder)
    for number in 0..<20 { #expect(try put(number, server).status == 201) }
    let epoch = try server.process.status["epoch"].text
    let copy = { (name: String) throws in
      _ = try folder.directory(name)
      try FileManager.default.copyItem(
        atPath: folder.file("store/journal.sqlite"), toPath: folder.file("\(name)/journal.sqlite"))
    }
    try copy("early")
    try server.end(SIGTERM)
    try copy("late")
    let refused = try serve(folder, store: "early")
    #expect(refused.status != 0)
    for text in ["journal.sqlite-wal", "keyway store repair"] {
      #expect(refused.errors.contains(text), "\(refused.errors)")
    }
    let whole = try self.server(folder, store: "late")
    #expect(try whole.revision == 20)
    #expect(try whole.process.status["epoch"].text == epoch)
  }

  @Test("Store and backup are for their owner alone, whatever the umask is")
  func permissions() throws {
    let folder = try ScratchDirectory()
    let schema = try folder.write(Self.schema, to: "schema.yaml")
    let script = """
      umask 0
      "\(PackageFolder.keyway)" serve --port 0 --schema "\(schema)" --store "\(folder.file("store"))" --set seed=none &
      until [ -s "\(folder.file("store/acknowledged"))" ]; do sleep 0.1; done
      "\(PackageFolder.keyway)" store backup "\(folder.file("backup"))" --store "\(folder.file("store"))" > /dev/null
      find "\(folder.file("store"))" "\(folder.file("backup"))" -perm /077
      kill $!; wait $!
      """
    let result = try ChildProcess.run("/bin/sh", ["-c", script])
    #expect(FileManager.default.fileExists(atPath: folder.file("backup")), "\(result.errors)")
    #expect(result.output == "")
  }

  @Test("With a clock before 1970, far ahead, and back again, the server serves and its store stays intact")
  func clocks() throws {
    let folder = try ScratchDirectory()
    let library = folder.file("clock.so")
    try PreloadedLibrary.build("clock.c", to: library)
    let schema = try folder.write(Self.schema, to: "schema.yaml")
    var count = 0
    // To 1957, to 12,000 years from now, to now.
    for offset in [-2_200_000_000, 380_000_000_000, 0, -1_900_000_000] {
      let server = try DurableServer(
        schema: schema, store: folder.file("store"), settings: ["snapshot.revisions": "10"],
        environment: ["LD_PRELOAD": library, "CLOCK_OFFSET_SECONDS": "\(offset)"])
      #expect(try server.revision == count)
      for _ in 0..<15 {
        let answer = try server.client.send("POST", "/v1/objects/Note", ["Idempotency-Key": "k\(count)"], body: "{}")
        #expect(answer.status == 201, "\(offset): \(answer.text)")
        count += 1
      }
      #expect(try server.client.send("GET", "/v1/objects/Note?limit=2").status == 200)
      #expect(try server.client.send("GET", "/v1/journal").status == 200)
      #expect(try server.client.stream("/v1/objects/Note?limit=2").next().name == "results")
      #expect(try server.end(SIGTERM) == 0, "\(offset)")
      for arguments in [["verify"], ["backup", folder.file("b\(count)")]] {
        let result = try ChildProcess.run(
          PackageFolder.keyway, ["store"] + arguments + ["--store", folder.file("store")],
          environment: ["LD_PRELOAD": library, "CLOCK_OFFSET_SECONDS": "\(offset)"])
        #expect(result.status == 0, "\(offset): \(result.output) \(result.errors)")
      }
    }
  }
}

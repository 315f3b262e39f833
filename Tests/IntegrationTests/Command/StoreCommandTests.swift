import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

@Suite("The commands of keyway store", .timeLimit(.minutes(60)))
struct StoreCommandTests {
  private let folder: TransferStore

  init() throws { folder = try TransferStore() }

  /// Serves, makes some transfers and stops. Returns the last cursor and the balances.
  private func fill(transfers: Int, settings: [String: String] = [:]) throws -> (cursor: String, balances: [Int]) {
    let server = try folder.serve(settings: settings)
    try TransferStore.fill(server)
    var balances = Array(repeating: TransferStore.start, count: TransferStore.accounts)
    for number in 0..<transfers {
      _ = try TransferStore.transfer(server, &balances, from: number % 8, to: (number + 3) % 8, number)
    }
    let cursor = try server.cursor
    #expect(try server.stop() == 0)
    return (cursor, balances)
  }

  private func revision(_ cursor: String) -> Int { Int(cursor.split(separator: "-")[1]) ?? -1 }

  @Test("verify says what there is, also while a server runs, and ends with 0 where all is well")
  func verify() throws {
    let server = try folder.serve(settings: ["snapshot.revisions": "10", "history.revisions": "5"])
    try TransferStore.fill(server)
    var balances = Array(repeating: TransferStore.start, count: TransferStore.accounts)
    for number in 0..<40 { _ = try TransferStore.transfer(server, &balances, from: 0, to: 1, number) }
    let running = try folder.keyway("verify")
    #expect(running.status == 0, "\(running.output)\(running.errors)")
    #expect(
      running.output.contains("acknowledged up to 41") && running.output.contains("all is well up to revision 41"))
    #expect(try server.stop() == 0)
    let stopped = try folder.keyway("verify")
    #expect(stopped.status == 0, "\(stopped.output)\(stopped.errors)")
    for text in ["epoch        ", "fingerprint ", "snapshot     revision ", "objects      8; "] {
      #expect(stopped.output.contains(text), "\(text)")
    }
    let absent = try folder.keyway("verify", store: "nowhere")
    #expect(absent.status == 1 && absent.errors.contains("the store does not exist"), "\(absent.errors)")
  }

  @Test("Damage is found and told by verify and serve; repair goes on with what is whole, under another epoch")
  func repair() throws {
    let (cursor, _) = try fill(transfers: 20)
    // Then everything is in the database, and no longer in its log.
    #expect(try folder.keyway("compact").status == 0)
    try folder.damage("store/journal.sqlite", at: #"["set","Account/1","balance""#)
    let serve = try ChildProcess.run(
      PackageFolder.keyway,
      ["serve", "--port", "0", "--store", folder.file("store"), "--schema", folder.file("schema.yaml")])
    #expect(serve.status == 1)
    #expect(serve.errors.contains("keyway store repair --store \(folder.file("store"))"), "\(serve.errors)")
    let verify = try folder.keyway("verify")
    #expect(verify.status == 1)
    let match = try #require(verify.output.firstMatch(of: /problem: .*revision ([0-9]+): it is not what was written/))
    let bad = try #require(Int(match.1))
    #expect(verify.output.contains("repair --until \(bad - 1)"), "\(verify.output)")
    let unasked = try folder.keyway("repair")
    #expect(unasked.status == 1 && unasked.output == verify.output && unasked.errors.contains("--until"))
    let tooFar = try folder.keyway("repair", "--until", "\(bad)")
    #expect(tooFar.status == 1 && tooFar.errors.contains("whole up to revision \(bad - 1) only"), "\(tooFar.errors)")
    let repair = try folder.keyway("repair", "--until", "\(bad - 1)")
    #expect(repair.status == 0, "\(repair.errors)")
    #expect(repair.output.contains("discarded: \(22 - bad) revision"), "\(repair.output)")
    #expect(try folder.names("journal.sqlite.damaged-", in: "store").count >= 1)
    #expect(try folder.keyway("verify").status == 0)
    let server = try folder.serve()
    #expect(try server.revision == bad - 1)
    #expect(try TransferStore.balances(server).reduce(0, +) == 800)
    try server.set("Account/1/note", #""again""#)
    let stream = try server.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": cursor])
    #expect(try stream.next().json["reason"].text == "epoch")
  }

  @Test("A backup taken while a server is written to is the state at its cursor; a store of it has another epoch")
  func backup() throws {
    let server = try folder.serve(settings: ["snapshot.revisions": "50", "history.revisions": "20"])
    try TransferStore.fill(server)
    let states = Locked<[Int: [Int]]>([:])
    let isDone = Locked(false)
    let failure = Locked<String?>(nil)
    let seed = seed
    let url = SendableServer(server)
    Thread.detachNewThread {
      var random = SplitMix64(seed: seed)
      var balances = Array(repeating: TransferStore.start, count: TransferStore.accounts)
      do {
        while !isDone.withLock({ $0 }) {
          let from = Int.random(in: 0..<8, using: &random)
          let to = (from + Int.random(in: 1..<8, using: &random)) % 8
          let revision = try TransferStore.transfer(
            url.server, &balances, from: from, to: to, Int.random(in: 1...50, using: &random))
          let state = balances
          states.withLock { $0[revision] = state }
        }
      } catch {
        failure.withLock { $0 = "\(error)" }
      }
      isDone.withLock { $0 = false }
    }
    var cursors: [String] = []
    for number in 0..<6 {
      let before = states.withLock { $0.count }
      #expect(Deadline().awaits { states.withLock { $0.count } > before + 20 })
      let backup = try folder.keyway("backup", folder.file("b\(number)"))
      #expect(backup.status == 0, "\(backup.errors)")
      let match = try #require(backup.output.firstMatch(of: /: ([a-z0-9]+-[0-9]+), 8 objects, [0-9]+ bytes/))
      cursors.append(String(match.1))
      #expect(try server.revision >= revision(String(match.1)))
      let verify = try folder.keyway("verify")
      #expect(verify.status == 0, "\(verify.output)")
    }
    isDone.withLock { $0 = true }
    #expect(Deadline().awaits { !isDone.withLock { $0 } })
    #expect(failure.withLock { $0 } == nil)
    #expect(try server.stop() == 0)
    #expect(Set(cursors).count == cursors.count)
    for (number, cursor) in cursors.enumerated() {
      let restore = try folder.keyway("restore", folder.file("b\(number)"), store: "r\(number)")
      #expect(restore.status == 0, "\(restore.errors)")
      let restored = try folder.serve("r\(number)")
      #expect(try restored.revision == revision(cursor))
      let balances = try TransferStore.balances(restored)
      #expect(balances == states.withLock { $0[revision(cursor)] }, "seed \(seed), \(cursor)")
      #expect(balances.reduce(0, +) == 800)
      let stream = try restored.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": cursor])
      #expect(try stream.next().json["reason"].text == "epoch")
      stream.socket.close()
      #expect(try restored.stop() == 0)
      #expect(try folder.keyway("verify", store: "r\(number)").status == 0)
    }
  }

  /// The server, for another thread that only writes to it.
  private struct SendableServer: @unchecked Sendable {
    let server: ServerProcess
    init(_ server: ServerProcess) { self.server = server }
  }

  @Test(
    "backup does not write over a file, and restore not over a store, unless told to; both refuse what is not whole")
  func refusals() throws {
    let (cursor, balances) = try fill(transfers: 10)
    let backup = folder.file("b")
    #expect(try folder.keyway("backup", backup).status == 0)
    #expect(try folder.keyway("backup", backup).errors.contains("--force"))
    #expect(try folder.keyway("backup", backup, "--force").status == 0)
    let refused = try folder.keyway("restore", backup)
    #expect(refused.status == 1 && refused.errors.contains("--replace"), "\(refused.errors)")
    try folder.write("other.yaml", TransferStore.schema + "  B: { keys: { a: { type: string } } }\n")
    let other = try folder.keyway("restore", backup, "--schema", folder.file("other.yaml"), store: "new")
    #expect(other.status == 1 && other.errors.contains("migrate"), "\(other.errors)")
    #expect(try folder.keyway("restore", backup, "--replace").status == 0)
    let aside = try #require(try folder.names("replaced-", in: "store").first)
    #expect(try folder.keyway("verify", store: "store/\(aside)").status == 0)
    let server = try folder.serve()
    #expect(try TransferStore.balances(server) == balances)
    #expect(try server.revision == revision(cursor))
    let inUse = try folder.keyway("restore", backup, "--replace")
    #expect(inUse.status == 1 && inUse.errors.contains("in use by process \(server.child.pid)"), "\(inUse.errors)")
    try folder.damage("b", at: "Account")
    let damaged = try folder.keyway("restore", backup, store: "new")
    #expect(damaged.status == 1 && damaged.errors.contains("not what was written"), "\(damaged.errors)")
  }

  @Test("compact makes the files smaller, and keeps the history unless told not to")
  func compact() throws {
    let (cursor, balances) = try fill(transfers: 300)
    for (arguments, event) in [(["compact"], "change"), (["compact", "--no-keep-history"], "reset")] {
      let outcome = try ChildProcess.run(
        PackageFolder.keyway,
        ["store"] + arguments + ["--store", folder.file("store"), "--config", folder.file("keyway.yaml")])
      #expect(outcome.status == 1, "there is no such file")
      try folder.write("keyway.yaml", "history: { revisions: 20 }\n")
      let compact = try ChildProcess.run(
        PackageFolder.keyway,
        ["store"] + arguments + ["--store", folder.file("store"), "--config", folder.file("keyway.yaml")])
      let match = try #require(compact.output.firstMatch(of: /: ([0-9]+) bytes before, ([0-9]+) after/))
      let (before, after) = try (#require(Int(match.1)), #require(Int(match.2)))
      #expect(before >= after, "\(compact.output)")
      #expect(try folder.keyway("verify").status == 0)
      let server = try folder.serve(settings: ["history.revisions": "20"])
      #expect(try TransferStore.balances(server) == balances)
      let epoch = cursor.split(separator: "-")[0]
      let stream = try server.client.stream(
        "/v1/objects/Account/1/note", ["Last-Event-ID": "\(epoch)-\(revision(cursor) - 20)"])
      try server.set("Account/1/note", #""x""#)
      #expect(try stream.next().name == event)
      try server.client.must("DELETE", "/v1/objects/Account/1/note")
      stream.socket.close()
      #expect(try server.stop() == 0)
      try FileManager.default.removeItem(atPath: folder.file("keyway.yaml"))
    }
  }
}

import Foundation
import KeyValueModel
import TestKit
import Testing

@Suite("A store and another schema", .timeLimit(.minutes(60)))
struct StoreMigrationTests {
  private let folder: TransferStore

  init() throws {
    folder = try TransferStore()
    let server = try folder.serve()
    try TransferStore.fill(server)
    try server.set("Account/1/note", #""12""#)
    try server.set("Account/2/note", #""many""#)
    #expect(try server.stop() == 0)
  }

  private func migrate(_ schema: String, _ arguments: String...) throws -> (
    status: Int32, output: String, errors: String
  ) {
    try ChildProcess.run(
      PackageFolder.keyway,
      ["store", "migrate", "--store", folder.file("store"), "--schema", folder.file(schema)] + arguments)
  }

  private func cursor() throws -> String {
    let verify = try folder.keyway("verify").output
    let epoch = try #require(verify.firstMatch(of: /epoch +([a-z0-9]+)/)).1
    let last = try #require(verify.firstMatch(of: /up to revision ([0-9]+);/)).1
    return "\(epoch)-\(last)"
  }

  @Test("Comments and layout are no other schema: the same cursor goes on")
  func layout() throws {
    let before = try cursor()
    try folder.write(
      "schema.yaml",
      "# Accounts.\nentities: {Account: {keys: {balance: {type: integer, default: 0}, note: {type: string}}}}\n")
    let server = try folder.serve()
    #expect(try server.cursor == before)
    let stream = try server.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": before])
    try server.set("Account/1/balance", "7")
    #expect(try stream.next().name == "change")
    #expect(try migrate("schema.yaml", "--dry-run").output.contains("nothing to do"))
  }

  @Test("serve makes lossless changes by itself, with a revision of their own, so that old cursors are reset")
  func automatic() throws {
    let before = try cursor()
    try folder.write("schema.yaml", TransferStore.schema + "      limit: { type: integer, default: 5 }\n")
    let server = try folder.serve()
    let parts = before.split(separator: "-")
    #expect(try server.cursor == "\(parts[0])-\((Int(parts[1]) ?? 0) + 1)")
    #expect(server.child.errors.contains("the schema has changed: Account.limit"), "\(server.child.errors)")
    #expect(try server.client.json("/v1/objects/Account/3")["limit"].whole == 5)
    let stream = try server.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": before])
    #expect(try stream.next().json["reason"].text == "compacted")
    stream.socket.close()
    #expect(try server.stop() == 0)
    let again = try folder.serve()
    #expect(try again.cursor == "\(parts[0])-\((Int(parts[1]) ?? 0) + 1)")
    #expect(!again.child.errors.contains("the schema has changed"))
  }

  @Test("serve refuses a change that would lose data, with the obstacles; the old schema still serves")
  func refused() throws {
    let before = try cursor()
    try folder.write("new.yaml", "entities: { Account: { keys: { balance: { type: integer } } } }\n")
    let serve = try ChildProcess.run(
      PackageFolder.keyway,
      ["serve", "--port", "0", "--store", folder.file("store"), "--schema", folder.file("new.yaml")])
    #expect(serve.status == 1)
    #expect(serve.errors.contains("Account.note"), "\(serve.errors)")
    #expect(serve.errors.contains("keyway store migrate --store \(folder.file("store"))"), "\(serve.errors)")
    let dry = try migrate("new.yaml", "--dry-run")
    #expect(dry.status == 1 && dry.errors.contains("Account.note"), "\(dry.errors)")
    let server = try folder.serve()
    #expect(try server.cursor == before)
  }

  @Test("Steps rename, drop, convert and fill; a dry run says the same and changes nothing")
  func steps() throws {
    let before = try cursor()
    try folder.write(
      "new.yaml",
      """
      entities:
        Deposit:
          keys:
            amount: { type: integer, default: 0 }
            note: { type: integer }
            currency: { type: string, optional: false }

      """)
    try folder.write("steps", "# The names first.\nrename Account Deposit\nrename Deposit.balance amount\n")
    let steps = [
      "--steps", folder.file("steps"), "--step", "convert Deposit.note or 0", "--step",
      #"fill Deposit.currency "EUR""#,
    ]
    func run(_ extra: [String]) throws -> (status: Int32, output: String, errors: String) {
      try ChildProcess.run(
        PackageFolder.keyway,
        ["store", "migrate", "--store", folder.file("store"), "--schema", folder.file("new.yaml")] + steps + extra)
    }
    let dry = try run(["--dry-run"])
    #expect(dry.status == 0, "\(dry.errors)")
    #expect(try cursor() == before)
    let real = try run([])
    #expect(real.status == 0, "\(real.errors)")
    let report = dry.output.split(separator: "\n").dropLast()
    #expect(report == real.output.split(separator: "\n").dropLast(), "\(dry.output)\n\(real.output)")
    #expect(report.contains { $0.contains("fill Deposit.currency") && $0.contains("8 objects") }, "\(report)")
    #expect(try folder.keyway("verify").status == 0)
    let server = try folder.serve(schema: "new.yaml")
    let deposits = try server.client.json("/v1/objects/Deposit?limit=100")["objects"].items
    #expect(deposits.count == 8 && deposits.allSatisfy { $0["amount"].whole == 100 && $0["currency"].text == "EUR" })
    #expect(try server.client.json("/v1/objects/Deposit/1")["note"].whole == 12)
    #expect(try server.client.json("/v1/objects/Deposit/2")["note"].whole == 0)
    #expect(try server.client.json("/v1/objects/Deposit/3")["note"].isNull)
    #expect(try server.cursor.split(separator: "-")[0] == before.split(separator: "-")[0])
  }

  @Test("A step computes values of the objects as they were; where it fails for one, nothing is changed")
  func computing() throws {
    let before = try cursor()
    try folder.write(
      "new.yaml",
      "entities: { Account: { keys: { balance: { type: integer }, label: { type: string, optional: false } } } }\n")
    let failing = try migrate("new.yaml", "--step", "set Account.label = note + '!'", "--step", "drop Account.note")
    #expect(failing.status == 1, "\(failing.output)")
    #expect(failing.errors.contains("Account.label: cannot be set by"), "\(failing.errors)")
    #expect(failing.errors.contains("Account/3 fails: no such overload"), "\(failing.errors)")
    let mistaken = try migrate("new.yaml", "--step", "set Account.label = balance", "--step", "drop Account.note")
    #expect(mistaken.status == 1 && mistaken.errors.contains("the expression gives an integer"), "\(mistaken.errors)")
    #expect(try cursor() == before)
    try folder.write(
      "steps", "set Account.label = string(balance) + (note == null ? '' : ' ' + note)\ndrop Account.note\n")
    let real = try migrate("new.yaml", "--steps", folder.file("steps"))
    #expect(real.status == 0, "\(real.errors)")
    #expect(real.output.contains("' ' + note): 8 objects\n"), "\(real.output)")
    #expect(try folder.keyway("verify").status == 0)
    let server = try folder.serve(schema: "new.yaml")
    #expect(try server.client.json("/v1/objects/Account/1")["label"].text == "100 12")
    #expect(try server.client.json("/v1/objects/Account/3")["label"].text == "100")
  }

  @Test("A dropped key is gone; a step with a mistake is refused before anything is done")
  func dropping() throws {
    let before = try cursor()
    try folder.write("new.yaml", "entities: { Account: { keys: { balance: { type: integer } } } }\n")
    for (step, message) in [("frobnicate Account", "not a migration step"), ("drop Account.colour", "colour")] {
      let mistake = try migrate("new.yaml", "--step", step)
      #expect(mistake.status == 1 && mistake.errors.contains(message), "\(mistake.errors)")
    }
    #expect(try cursor() == before)
    #expect(try migrate("new.yaml", "--step", "drop Account.note").status == 0)
    let server = try folder.serve(schema: "new.yaml")
    #expect(try server.client.json("/v1/objects/Account/1").has("note") == false)
  }

  @Test("A store without objects takes any schema")
  func empty() throws {
    let server = try folder.serve("empty")
    let cursor = try server.cursor
    #expect(try server.stop() == 0)
    try folder.write("new.yaml", "entities: { Other: { keys: { a: { type: integer } } } }\n")
    let other = try folder.serve("empty", schema: "new.yaml")
    #expect(try other.cursor == cursor)
    try other.client.must("PUT", "/v1/objects/Other/1", body: #"{"a":1}"#)
    #expect(try other.stop() == 0)
    #expect(try folder.keyway("verify", store: "empty").status == 0)
    let again = try folder.serve("empty", schema: "new.yaml")
    #expect(try again.client.json("/v1/objects/Other/1")["a"].whole == 1)
  }
}

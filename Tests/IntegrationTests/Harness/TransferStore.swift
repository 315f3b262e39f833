import Foundation
import KeyValueModel
import TestKit

/// A folder with a store of accounts between which money is transferred, so that the sum of all balances stays the
/// same.
final class TransferStore {
  static let accounts = 8
  static let start = 100

  static let schema = """
    entities:
      Account:
        keys:
          balance: { type: integer, default: 0 }
          note: { type: string }

    """

  private let directory: ScratchDirectory

  init() throws {
    directory = try ScratchDirectory()
    try write("schema.yaml", Self.schema)
  }

  func file(_ name: String) -> String { directory.file(name) }

  func write(_ name: String, _ text: String) throws { try directory.write(text, to: name) }

  func bytes(_ name: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: file(name))) }

  /// Returns the names in a folder with a prefix.
  func names(_ prefix: String, in directory: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: file(directory)).filter { $0.hasPrefix(prefix) }.sorted()
  }

  /// Changes a byte of the last text of this kind in a file.
  func damage(_ name: String, at text: String) throws {
    var bytes = try bytes(name)
    guard let range = bytes.range(of: Data(text.utf8), options: .backwards) else {
      throw LoopbackError("\(text) does not stand in \(name)")
    }
    bytes[range.lowerBound] ^= 1
    try bytes.write(to: URL(fileURLWithPath: file(name)))
  }

  func serve(
    _ store: String = "store", schema: String = "schema.yaml", settings: [String: String] = [:]
  ) throws -> ServerProcess {
    let all = settings.merging(["seed": "none"]) { given, _ in given }
    return try ServerProcess("--store", file(store), "--schema", file(schema), settings: all)
  }

  /// Runs `keyway store …` on a store of the folder to its end.
  func keyway(_ arguments: String..., store: String = "store") throws -> (
    status: Int32, output: String, errors: String
  ) {
    try ChildProcess.run(PackageFolder.keyway, ["store"] + arguments + ["--store", file(store)])
  }

  // MARK: Transfers

  /// Creates the accounts in one transaction.
  static func fill(_ server: ServerProcess) throws {
    let operations = (1...accounts).map { number in
      Value.object([
        "op": .string("create"), "object": .string("Account/\(number)"),
        "value": .object(["balance": .integer(Int64(start))]),
      ])
    }
    try commit(operations, server)
  }

  /// Transfers an amount, and updates `balances`. Returns the revision.
  static func transfer(
    _ server: ServerProcess, _ balances: inout [Int], from: Int, to: Int, _ amount: Int
  ) throws -> Int {
    balances[from] -= amount
    balances[to] += amount
    return try commit(
      [from, to].map { index in
        .object([
          "op": .string("set"), "object": .string("Account/\(index + 1)"), "keyPath": .string("balance"),
          "value": .integer(Int64(balances[index])),
        ])
      }, server)
  }

  @discardableResult
  private static func commit(_ operations: [Value], _ server: ServerProcess) throws -> Int {
    let body = Value.object(["operations": .array(operations)]).json
    return try server.client.must("POST", "/v1/transactions", body: body).json["revision"].whole ?? -1
  }

  /// Returns the balances of a server.
  static func balances(_ server: ServerProcess) throws -> [Int] {
    try server.client.json("/v1/objects/Account?limit=100")["objects"].items
      .sorted { ($0["@ref"].text ?? "") < ($1["@ref"].text ?? "") }.map { $0["balance"].whole ?? .min }
  }
}

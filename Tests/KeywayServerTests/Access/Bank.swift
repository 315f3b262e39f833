import KeyValueModel
import KeywayServer
import Store
import TestKit

/// A bank whose tellers may do everything with its accounts, and whose customers see only their own.
enum Bank {
  static let schema = """
    access:
      read: identity != null
    entities:
      Customer:
        access:
          update: user == identity.sub
        keys:
          name: { type: string }
          user: { type: string }
          vip: { type: boolean, default: false }
          accounts: { toMany: Account, inverse: owner }
          total: { computed: "accounts.@sum.balance" }
      Account:
        access:
          read: owner.user == identity.sub || "teller" in identity.roles
          create: '"teller" in identity.roles'
          update: '"teller" in identity.roles && balance >= 0.0 && before.balance < 1000.0'
          delete: 'false'
          keys:
            note: { read: '"teller" in identity.roles' }
            code: { update: '"teller" in identity.roles && "chief" in identity.roles' }
        keys:
          balance: { type: number, default: 0 }
          note: { type: string }
          code: { type: string }
          owner: { toOne: Customer, inverse: accounts }
          doubled: { computed: "balance * 2.0" }
      News:
        access:
          read: 'true'
          create: identity != null && by == identity.sub
          update: by == identity.sub && before.by == identity.sub
          delete: by == identity.sub
        keys:
          by: { type: string, indexed: true }
          text: { type: string }
          about: { toOne: Account }
    """

  static let objects = [
    ("Customer/1", #"{"name":"Ann","user":"ann"}"#), ("Customer/2", #"{"name":"Bob","user":"bob"}"#),
    ("Account/1", #"{"balance":10,"note":"n1","code":"c1","owner":"Customer/1"}"#),
    ("Account/2", #"{"balance":20,"note":"n2","code":"c2","owner":"Customer/2"}"#),
    ("Account/3", #"{"balance":30,"note":"n3","code":"c3","owner":"Customer/1"}"#),
    ("News/1", #"{"by":"ann","text":"hello","about":"Account/2"}"#),
  ]
}

extension GuardedServer {
  static func bank() throws -> GuardedServer { try GuardedServer(schema: Bank.schema, objects: Bank.objects) }

  var ann: [String: String] { bearer("ann") }
  var bob: [String: String] { bearer("bob") }
  var teller: [String: String] { bearer("tim", roles: ["teller"]) }

  /// The cursor of the present state.
  var cursor: String { "\(server.epoch)-\(server.server.store.snapshot.revision)" }

  func get(_ target: String, _ headers: [String: String]) throws -> WireResponse {
    try client.send("GET", "/v1/objects/\(target)", headers)
  }

  func json(_ target: String, _ headers: [String: String]) throws -> Value {
    try client.must("GET", "/v1/objects/\(target)", headers).json
  }
}

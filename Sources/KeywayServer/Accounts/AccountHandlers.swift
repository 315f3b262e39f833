import HTTPServer
import HTTPTypes
import KeyValueModel
import Store

/// `/v1/access/accounts`: the accounts of the store, for admins. No response has a password, or what is kept of one.
struct AccountHandlers: Sendable {
  let access: AccessControl
  let passwords: Passwords
  let store: Store
  let readings: Readings

  /// `GET` of all: `{"accounts":[{"name":…,"claims":{…}}]}`, by name.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    try checkEnabled()
    return try readings.response(to: request, isLong: access.accounts.count > 1_000) {
      [accounts = access.accounts] budget throws(Problem) in
      let entries = accounts.all().map { Value.object(Self.members(of: $0)) }
      return try Response.json(["accounts": .array(entries)], within: budget)
    }
  }

  /// `GET` of one.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    .response(Response.json(Self.members(of: try account(context))))
  }

  /// `PUT`: creates an account, or changes the password, the claims or both of one; what the body leaves out stays.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let name = try name(context)
    let (password, claims) = try Self.change(try Body.object(of: request))
    guard password != nil || access.accounts.account(named: name) != nil else {
      throw Problem(.invalidValue, "the account does not exist yet: it needs a password")
    }
    try access.accounts.checkRoom(for: name, claims: claims)
    return .deferred { [self, address = request.address, client = request.client] completion in
      guard let password else { return commit(.set(password: nil, claims: claims), of: name, for: client, completion) }
      passwords.hash(password, for: address, completion) { hash in
        commit(.set(password: hash, claims: claims), of: name, for: client, completion)
      }
    }
  }

  /// `DELETE`: removes one; its sessions end.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let name = try account(context).name
    return .deferred { [self, client = request.client] completion in
      commit(.remove, of: name, for: client, completion)
    }
  }

  /// Commits a change, and responds with the account that it leaves.
  private func commit(
    _ change: Accounts.Write.Change, of name: AccountName, for client: ClientAddress, _ completion: Completion
  ) {
    let accounts = access.accounts
    let write = accounts.write(change, of: name)
    store.commit(for: client, completion, attachment: { accounts.prepare(write, at: $0) }) { isDone in
      let (former, present) = accounts.conclude(write, isDone: isDone)
      if case .remove = change { return Response(status: .noContent) }
      // Another request has removed it meanwhile.
      guard let present else { return Self.unknown(name).response }
      var response = Response.json(Self.members(of: present))
      if former == nil { response.status = .created }
      return response
    } orRefusing: { code, reason in
      Problem(code, "the account has not changed: \(reason)")
    }
  }

  // MARK: Reading requests

  private func checkEnabled() throws(Problem) {
    guard access.options.accounts else {
      throw Problem(.notFound, "this server keeps no accounts (access.accounts)")
    }
  }

  private func name(_ context: RequestContext) throws(Problem) -> AccountName {
    try context.checkParameters()
    try checkEnabled()
    guard let name = AccountName(context[.name]) else {
      throw Problem(.invalidValue, "'\(context[.name])' \(AccountName.rule)")
    }
    return name
  }

  private func account(_ context: RequestContext) throws(Problem) -> Account {
    let name = try name(context)
    guard let account = access.accounts.account(named: name) else { throw Self.unknown(name) }
    return account
  }

  private static func unknown(_ name: AccountName) -> Problem {
    Problem(.notFound, "the account '\(name)' does not exist")
  }

  /// Returns the password and the claims of a body, each nil if the body does not have it.
  private static func change(_ body: JSONObject) throws(Problem) -> (password: String?, claims: JSONObject?) {
    for (member, _) in body.members where member != "password" && member != "claims" {
      throw Problem(.invalidValue, "an account has no member '\(member)'; its members are password and claims")
    }
    var password: String?
    if let given = body["password"] {
      guard case .string(let text) = given else { throw Problem(.invalidValue, "password must be a string") }
      guard PasswordHash.isLongEnough(text) else {
        throw Problem(.invalidValue, "the password has fewer than \(PasswordHash.leastCharacters) characters")
      }
      password = text
    }
    guard let given = body["claims"] else { return (password, nil) }
    guard case .object(let claims) = given else { throw Problem(.invalidValue, "claims must be an object") }
    for claim in Account.reservedClaims where claims[claim] != nil {
      throw Problem(.invalidValue, "claims cannot set '\(claim)', which the server sets")
    }
    return (password, claims)
  }

  private static func members(of account: Account) -> JSONObject {
    ["name": .string(account.name.text), "claims": .object(account.claims)]
  }
}

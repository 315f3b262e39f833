import HTTPServer

/// The settings `access.…`, which say who may use the server (the specification, section 11).
package struct AccessOptions: Sendable {
  /// The value of a setting that is not set.
  static let none = "none"

  /// The file of a JWK Set. If it is `none`, everybody may do everything. `access.keys`.
  package var keys = none
  /// The required value of `iss`; `none` for any. `access.issuer`.
  package var issuer = none
  /// The value that `aud` must be or contain; `none` for any. `access.audience`.
  package var audience = none
  /// The tolerated difference between clocks, in seconds. `access.leewaySeconds`.
  package var leewaySeconds = 10
  /// The longest life of a token, in seconds; 0 for any. `access.tokenSeconds`.
  package var tokenSeconds = 3_153_600_000
  /// True if the store keeps accounts, whose names and passwords sign in. `access.accounts`.
  package var accounts = false
  /// The text before the name of an account in `sub`; `none` for no text. `access.accountPrefix`.
  package var accountPrefix = none
  /// The maximum size of all accounts in bytes. `access.accountBytes`.
  package var accountBytes = 64 << 20
  /// The cost of hashing a password: not a setting, since what it protects is whatever people chose as passwords.
  package var passwordCost = PasswordHash.Cost.standard
  /// The number of seconds that a session of an account lasts. `access.sessionSeconds`.
  package var sessionSeconds = 30 * 24 * 3_600
  /// The condition in CEL over `identity` for admins, who may do everything. `access.admin`.
  package var admin = #"type(identity.roles) == list && "keyway-admin" in identity.roles"#
  /// The condition in CEL over `identity` for nodes, which may follow this server, and do nothing else. `access.nodes`.
  package var nodes = #"type(identity.roles) == list && "keyway-node" in identity.roles"#
  /// The number of seconds for which a node without its leader, or without the journal that it shares, serves
  /// identities, whose tokens may have been revoked meanwhile; 0 for no limit. `access.staleSeconds`.
  package var staleSeconds = 300
  /// The other origins whose pages may call. `access.origins`.
  package var origins: [String] = []
  /// The proxies whose `X-Forwarded-For` is trusted: addresses, ranges, `unix`. `access.proxies`.
  package var proxies: [String] = []
  /// True if the server may serve everything to everyone: without keys beyond the loopback, objects of a schema with
  /// rules, or those of a node that has keys. `access.open`.
  package var open = false
  /// True if `/metrics` and `/v1/status` are for everybody. `access.openMetrics`.
  package var openMetrics = false
  /// The limits on the sessions that the store keeps. `access.sessionBytes`, `access.sessionsPerIdentity`.
  package var sessions = Sessions.Limits()
  /// The limits on the request rates of clients. `access.requestsPerSecond`, `access.rateClients`.
  package var rates = RequestRates.Limits()
  /// The maximum number of open streams of one client; 0 for the value of `streams.perAddress`. `access.streams`.
  package var streams = 0
  /// The maximum number of revocations. `access.revocations`.
  package var revocations = 100_000

  /// The defaults.
  package init() {}

  /// True if keys or accounts are set, or the server was explicitly opened to everybody.
  package var isDecided: Bool { keys != Self.none || accounts || open }

  /// Throws if a server on this host would let everybody do what is not meant for everybody, and the settings do not
  /// say that it should: anything, on a network; what the schema has rules for, anywhere. A socket is not on a network.
  func check(host: String, schemaHasRules: Bool) throws(AccessError) {
    guard !isDecided else { return }
    if schemaHasRules {
      throw AccessError(
        "the schema has access rules, but no keys are set: clients cannot be identified. Set access.keys or "
          + "access.accounts, or access.open to true if that is intended")
    }
    guard SocketFile.path(ofHost: host) == nil, !HostNames.isLoopback(host.contains(":") ? "[\(host)]" : host) else {
      return
    }
    throw AccessError(
      "host is \(host), beyond the loopback, but no keys are set: anyone who can reach the port could read and write "
        + "everything. Set access.keys or access.accounts, or access.open to true if that is intended")
  }
}

/// An error in the access settings, described in a sentence.
package struct AccessError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The sentence.
  package let description: String

  init(_ description: String) { self.description = description }
}

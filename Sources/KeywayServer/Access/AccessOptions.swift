import HTTPServer

/// Who may ask, as the settings `access.…` say it (the specification, section 11).
package struct AccessOptions: Sendable {
  /// What a setting says that is not set.
  static let none = "none"

  /// The file of a JWK Set; `none`, and then everybody may do everything. `access.keys`.
  package var keys = none
  /// What `iss` must be; `none` for anything. `access.issuer`.
  package var issuer = none
  /// What `aud` must be or hold; `none` for anything. `access.audience`.
  package var audience = none
  /// By how many seconds clocks may differ. `access.leewaySeconds`.
  package var leewaySeconds = 10
  /// The longest life of a token, in seconds; 0 for any. `access.tokenSeconds`.
  package var tokenSeconds = 3_153_600_000
  /// CEL over `identity`: who meets it may do everything. `access.admin`.
  package var admin = #"type(identity.roles) == list && "keyway-admin" in identity.roles"#
  /// CEL over `identity`: who meets it may follow this server, and do nothing else. `access.nodes`.
  package var nodes = #"type(identity.roles) == list && "keyway-node" in identity.roles"#
  /// The number of seconds for which a node without its leader, or without the journal that it shares, serves
  /// identities, whose tokens may have been revoked meanwhile; 0 is for ever. `access.staleSeconds`.
  package var staleSeconds = 300
  /// Other origins whose pages may call. `access.origins`.
  package var origins: [String] = []
  /// The proxies whose `X-Forwarded-For` is believed: addresses, ranges, `unix`. `access.proxies`.
  package var proxies: [String] = []
  /// True if the server may serve everything to everyone: without keys beyond the loopback, objects of a schema with
  /// rules, or those of a node that has keys. `access.open`.
  package var open = false
  /// Whether `/metrics` and `/v1/status` are for everybody. `access.openMetrics`.
  package var openMetrics = false
  /// Bounds of the sessions that the store keeps. `access.sessionBytes`, `access.sessionsPerIdentity`.
  package var sessions = Sessions.Limits()
  /// How often one client may ask, and of how many that is known. `access.requestsPerSecond`, `access.rateClients`.
  package var rates = RequestRates.Limits()
  /// The most open streams of one client; 0 for what `streams.perAddress` says. `access.streams`.
  package var streams = 0
  /// How many revocations are kept. `access.revocations`.
  package var revocations = 100_000

  /// The defaults.
  package init() {}

  /// True if clients are asked who they are, or it was said that they need not be.
  package var isDecided: Bool { keys != Self.none || open }

  /// Throws if a server on this host would let anybody do what was not meant for everybody, and nobody has said that it
  /// should: anything, on a network; what the schema has rules for, anywhere. A socket is not on a network.
  func check(host: String, schemaHasRules: Bool) throws(AccessError) {
    guard !isDecided else { return }
    if schemaHasRules {
      throw AccessError(
        "the schema has access rules, but no keys are set: clients cannot be identified. Set access.keys, or "
          + "access.open to true if that is intended")
    }
    guard SocketFile.path(ofHost: host) == nil, !HostNames.isLoopback(host.contains(":") ? "[\(host)]" : host) else {
      return
    }
    throw AccessError(
      "host is \(host), beyond the loopback, and there are no keys: all who reach the port could read and write "
        + "everything. Set access.keys, or access.open to true if that is intended")
  }
}

/// What is wrong with the settings of access, in a sentence.
package struct AccessError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The sentence.
  package let description: String

  init(_ description: String) { self.description = description }
}

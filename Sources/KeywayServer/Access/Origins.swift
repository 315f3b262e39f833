import Foundation
import HTTPServer
import HTTPTypes

/// The other origins whose pages may call this server (Fetch standard, CORS protocol).
struct Origins: Sendable {
  /// The time for which a browser may remember a preflight, in seconds.
  private static let preflightSeconds = 600
  /// The request headers of the specification, and those that its clients send in addition.
  private static let requestFields = [
    "Authorization", "Content-Type", "Accept", "If-Match", "If-None-Match", "Last-Event-ID", "Keyway-Writer",
    "Keyway-Lifetime", "Keyway-Cursor", "Idempotency-Key", "X-Request-Id",
    // Polyfills of EventSource send it.
    "Cache-Control",
  ].joined(separator: ", ")
  /// The response headers that a page may read.
  private static let exposedFields = "ETag, Keyway-Cursor, Link, Location, Retry-After"

  private let allowed: Set<String>

  /// Creates the set of allowed origins. Throws an `AccessError` for a text that is not an origin: a scheme, a host and
  /// perhaps a port, and nothing after them.
  init(_ origins: [String]) throws(AccessError) {
    allowed = Set(
      try origins.map { origin throws(AccessError) in
        guard let serialized = Self.serialized(origin) else {
          throw AccessError(
            "access.origins: '\(origin)' is not an origin such as https://app.example.org or http://localhost:3000")
        }
        return serialized
      })
  }

  /// True if no other origin may call.
  var isEmpty: Bool { allowed.isEmpty }

  /// Returns true if pages of an origin may call.
  func isAllowed(_ origin: String) -> Bool { allowed.contains(origin.lowercased()) }

  /// Adds the fields for a page of an origin to the fields of a response. The origin is nil if the client is not a
  /// page, or is a page of this origin in a browser that does not say so.
  func add(to fields: inout FieldSection, for origin: String?) {
    guard !allowed.isEmpty else { return }
    // Added to the fields that `Vary` names already (RFC 9110 §12.5.5).
    fields[.vary] = fields[.vary].map { "\($0), Origin" } ?? "Origin"
    if let origin, isAllowed(origin) {
      fields[.accessControlAllowOrigin] = origin
      fields[.accessControlAllowCredentials] = "true"
      fields[.accessControlExposeHeaders] = Self.exposedFields
    }
  }

  /// Returns the fields of the response to a preflight that come in addition to those.
  static func preflight(methods: String) -> FieldSection {
    [
      .accessControlAllowMethods: methods, .accessControlAllowHeaders: requestFields,
      .accessControlMaxAge: "\(preflightSeconds)",
    ]
  }

  /// Returns true if a page of an origin may use the session cookie to change something here: the origin is listed, or
  /// is this server's own, which is recognized by the host and port that the request is for.
  func mayUseCookie(_ origin: String, host: String?) -> Bool {
    if isAllowed(origin) { return true }
    guard let host, let scheme = ["http://", "https://"].first(where: { origin.lowercased().hasPrefix($0) }) else {
      return false
    }
    return HostNames.isSame(origin.dropFirst(scheme.count), host, isSecure: scheme == "https://")
  }

  /// Returns an origin as a browser sends it, in lower case and without the default port of its scheme (HTML standard,
  /// "ASCII serialisation of an origin"); nil for a text that is not an origin.
  private static func serialized(_ text: String) -> String? {
    let ports = ["http": 80, "https": 443]
    guard text.utf8.allSatisfy({ $0 < 0x80 }), let parts = URLComponents(string: text.lowercased()),
      let scheme = parts.scheme, let port = ports[scheme], let host = parts.encodedHost,
      HostNames.setting(for: host) == host
    else { return nil }
    let origin = "\(scheme)://\(host)"
    guard let named = parts.port else { return text.lowercased() == origin ? origin : nil }
    guard text.lowercased() == "\(origin):\(named)", (1...65_535).contains(named) else { return nil }
    return named == port ? origin : "\(origin):\(named)"
  }
}

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
    for origin in origins where !Self.isOrigin(origin) {
      throw AccessError(
        "access.origins: '\(origin)' is not an origin such as https://app.example.org or http://localhost:3000")
    }
    allowed = Set(origins.map { $0.lowercased() })
  }

  /// True if no other origin may call.
  var isEmpty: Bool { allowed.isEmpty }

  /// Returns true if pages of an origin may call.
  func isAllowed(_ origin: String) -> Bool { allowed.contains(origin.lowercased()) }

  /// Adds the fields for a page of an origin to the fields of a response. The origin is nil if the client is not a
  /// page, or is a page of this origin in a browser that does not say so.
  func add(to fields: inout HTTPFields, for origin: String?) {
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
  static func preflight(methods: String) -> HTTPFields {
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

  private static func isOrigin(_ text: String) -> Bool {
    guard let scheme = ["http://", "https://"].first(where: { text.lowercased().hasPrefix($0) }) else { return false }
    let rest = text.dropFirst(scheme.count)
    return !rest.isEmpty
      && rest.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"),
          UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"):
          true
        default: false
        }
      }
  }
}

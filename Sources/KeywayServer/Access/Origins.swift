import HTTPServer
import HTTPTypes

/// The pages of other origins that may call (Fetch standard, CORS protocol).
struct Origins: Sendable {
  /// How long a browser may remember a preflight, in seconds.
  private static let preflightSeconds = 600
  /// The headers of requests that the specification knows, and those that clients of it send besides.
  private static let requestFields = [
    "Authorization", "Content-Type", "Accept", "If-Match", "If-None-Match", "Last-Event-ID", "Keyway-Writer",
    "Keyway-Lifetime", "Keyway-Cursor", "Idempotency-Key", "X-Request-Id",
    // Polyfills of EventSource send it.
    "Cache-Control",
  ].joined(separator: ", ")
  /// The headers of answers that a page may read.
  private static let exposedFields = "ETag, Keyway-Cursor, Link, Location, Retry-After"

  private let allowed: Set<String>

  /// Throws an `AccessError` for what is no origin: a scheme, a host and perhaps a port, and nothing behind them.
  init(_ origins: [String]) throws(AccessError) {
    for origin in origins where !Self.isOrigin(origin) {
      throw AccessError(
        "access.origins: '\(origin)' is no origin, such as https://app.example.org or http://localhost:3000")
    }
    allowed = Set(origins.map { $0.lowercased() })
  }

  /// Whether no other origin may call.
  var isEmpty: Bool { allowed.isEmpty }

  /// Whether pages of an origin may call.
  func isAllowed(_ origin: String) -> Bool { allowed.contains(origin.lowercased()) }

  /// Adds to the fields of an answer what is for a page of an origin; nil is no page, or one of this origin in a
  /// browser that does not say so.
  func add(to fields: inout HTTPFields, for origin: String?) {
    guard !allowed.isEmpty else { return }
    // Beside the fields that it names already (RFC 9110 §12.5.5).
    fields[.vary] = fields[.vary].map { "\($0), Origin" } ?? "Origin"
    if let origin, isAllowed(origin) {
      fields[.accessControlAllowOrigin] = origin
      fields[.accessControlAllowCredentials] = "true"
      fields[.accessControlExposeHeaders] = Self.exposedFields
    }
  }

  /// The fields of the answer to a preflight, beside those.
  static func preflight(methods: String) -> HTTPFields {
    [
      .accessControlAllowMethods: methods, .accessControlAllowHeaders: requestFields,
      .accessControlMaxAge: "\(preflightSeconds)",
    ]
  }

  /// Whether a page of an origin may use the session cookie to change something here: one of this server's own origin,
  /// which is known by the host and port that the request is for, or one that is listed.
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

import HTTPServer
import HTTPTypes

/// Content negotiation (RFC 9110 §12.5.1) between the ways to read a resource.
package enum Negotiation {
  /// The forms of a resource: one JSON value, lines of JSON, or a stream of updates.
  package enum Form: String, Sendable {
    case json = "application/json"
    case lines = "application/x-ndjson"
    case stream = "text/event-stream"

    /// The media type.
    package var type: String { rawValue }

    /// The media range of all types with the same top-level type.
    fileprivate var family: String { self == .stream ? "text/*" : "application/*" }
  }

  /// Returns the form that a client prefers. Throws `not-acceptable`.
  static func form(of request: borrowing Request, available: [Form]) throws(Problem) -> Form {
    if let form = form(request.header(.accept), available: available) { return form }
    let types = available.map(\.type).joined(separator: ", ")
    throw Problem(.notAcceptable, "this resource is available as \(types)").with(.accept, types)
  }

  /// Returns the form in `available` that an `Accept` header prefers. Nil if the header allows none of them. The first
  /// available one wins a tie, and a named type wins over a range.
  package static func form(_ accept: String?, available: [Form]) -> Form? {
    guard let accept, accept != "*/*", !accept.isEmpty else { return available.first }
    var best: (form: Form, rank: (Double, Int))?
    for form in available {
      guard let rank = rank(of: form, in: accept), rank.quality > 0 else { continue }
      let candidate = (rank.quality, rank.precision)
      if best.map({ $0.rank < candidate }) ?? true { best = (form, candidate) }
    }
    return best?.form
  }

  /// Returns the quality and the precision of the most precise range that covers `form`, or nil if none does.
  private static func rank(of form: Form, in accept: String) -> (quality: Double, precision: Int)? {
    var found: (quality: Double, precision: Int)?
    for range in accept.split(separator: ",") {
      let parts = range.split(separator: ";").map { $0.trimmingSpaces().lowercased() }
      guard let name = parts.first else { continue }
      let precision = name == form.type ? 2 : name == form.family ? 1 : name == "*/*" ? 0 : -1
      guard precision >= 0, precision > found?.precision ?? -1 else { continue }
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.flatMap { Double($0.dropFirst(2)) }
      found = (weight ?? 1, precision)
    }
    return found
  }
}

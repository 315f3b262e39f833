package import HTTPServer
internal import HTTPTypes
package import KeyValueModel

/// Reading bodies: what they must be, before what they say is looked at.
package enum Body {
  /// The one media type of bodies, which a page of another origin cannot send without being asked first.
  package static let json = "application/json"
  /// JSON merge patch (RFC 7396 §4).
  package static let mergePatch = "application/merge-patch+json"

  /// The JSON value of a body. Throws `unsupported-media-type` unless its type is one of `types`, and `malformed-json`.
  package static func value(
    of request: borrowing Request, types: [String] = [json]
  ) throws(Problem) -> Value {
    let given = request.header(.contentType)
    let type = given?.split(separator: ";").first.map { $0.trimmingSpaces().lowercased() }
    guard let type, types.contains(type) else {
      let list = types.joined(separator: ", ")
      let reason = given.map { "'\($0)' is not" } ?? "there is no Content-Type, and it must be"
      throw Problem(.unsupportedMediaType, "\(reason) one of \(list); with curl, use curl --json")
        .with(types.contains(mergePatch) ? .acceptPatch : .accept, list)
    }
    do throws(JSONError) {
      return try Value(json: request.body())
    } catch {
      throw Problem(.malformedJSON, error.description)
    }
  }

  /// The JSON object of a body; anything else is `invalid-value`.
  package static func object(
    of request: borrowing Request, types: [String] = [json]
  ) throws(Problem) -> JSONObject {
    guard case .object(let object) = try value(of: request, types: types) else {
      throw Problem(.invalidValue, "the body must be a JSON object")
    }
    return object
  }
}

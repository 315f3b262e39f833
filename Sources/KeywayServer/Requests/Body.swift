package import HTTPServer
import HTTPTypes
package import KeyValueModel

/// Reads the bodies of requests: checks the media type, and parses the JSON.
package enum Body {
  /// The media type of bodies. A page of another origin cannot send it without the server's permission (preflight).
  package static let json = "application/json"
  /// JSON merge patch (RFC 7396 §4).
  package static let mergePatch = "application/merge-patch+json"
  /// JSON Patch (RFC 6902 §6).
  package static let jsonPatch = "application/json-patch+json"
  /// The media types of `PATCH` for an object. `application/json` is treated as a merge patch.
  package static let patchTypes = [json, mergePatch, jsonPatch]

  /// Returns the media type of a body, without its parameters. Throws `unsupported-media-type` if it is not one of
  /// `types`.
  package static func mediaType(of request: borrowing Request, among types: [String]) throws(Problem) -> String {
    let given = request.header(.contentType)
    // Most clients send exactly one of these texts.
    if let given, types.contains(given) { return given }
    let type = given.map { $0.prefix { $0 != ";" }.trimmingSpaces().lowercased() }
    if let type, types.contains(type) { return type }
    let list = types.joined(separator: ", ")
    let reason = given.map { "'\($0)' is not" } ?? "Content-Type is missing and must be"
    throw Problem(.unsupportedMediaType, "\(reason) one of \(list); with curl, use curl --json")
      .with(types.contains(mergePatch) ? .acceptPatch : .accept, list)
  }

  /// The maximum number of JSON levels of a body.
  package static let depthLimit = 64

  /// Returns the JSON value of a body. Throws `unsupported-media-type` unless its type is one of `types`,
  /// `malformed-json`, and `invalid-value` for a valid JSON number that no key can hold.
  package static func value(
    of request: borrowing Request, types: [String] = [json], depthLimit: Int = depthLimit
  ) throws(Problem) -> Value {
    _ = try mediaType(of: request, among: types)
    let body = request.body()
    let value: Value
    do throws(JSONError) {
      value = try Value(json: body, depthLimit: depthLimit)
    } catch {
      throw Problem(error.isOutOfRange ? .invalidValue : .malformedJSON, error.description)
    }
    // Short numbers and empty lists take many times as much memory as their text.
    if body.count > MemoryLedger.uncountedBytes {
      do throws(MemoryRefusal) { try request.hold(value.size.memoryBytes) } catch { throw Problem(error) }
    }
    return value
  }

  /// Returns the JSON Patch of a body. Throws `malformed-json` for any other JSON, since RFC 5789 §2.2 requires 400.
  package static func jsonPatch(of request: borrowing Request, operationLimit: Int) throws(Problem) -> JSONPatch {
    // Two levels, the list and the operation, enclose a value that may have the full depth.
    let body = try value(of: request, types: [jsonPatch], depthLimit: depthLimit + 2)
    do throws(JSONPatchError) {
      return try JSONPatch(body, operationLimit: operationLimit)
    } catch {
      let code: ProblemCode = error.kind == .tooManyOperations ? .tooManyOperations : .malformedJSON
      throw Problem(code, "the JSON Patch: \(error.description)")
    }
  }

  /// Returns the JSON object of a body. Throws `invalid-value` for any other JSON value.
  package static func object(
    of request: borrowing Request, types: [String] = [json], depthLimit: Int = depthLimit
  ) throws(Problem) -> JSONObject {
    guard case .object(let object) = try value(of: request, types: types, depthLimit: depthLimit) else {
      throw Problem(.invalidValue, "the body must be a JSON object")
    }
    return object
  }
}

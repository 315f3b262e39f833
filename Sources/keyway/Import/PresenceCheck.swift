import KeyValueModel
import KeywayClient

/// Asks a server which objects are there.
enum PresenceCheck {
  /// Those of `references` that are there, by a `HEAD` of each, several at a time.
  static func present(_ references: Set<Reference>, on client: Client) async throws -> Set<Reference> {
    var rest = references.sorted()[...]
    return try await withThrowingTaskGroup(of: (Reference, Bool).self) { group in
      var present: Set<Reference> = []
      func ask(_ reference: Reference) {
        group.addTask { (reference, try await isThere(reference, on: client)) }
      }
      for _ in 0..<ImportLimits.connections {
        if let reference = rest.popFirst() { ask(reference) }
      }
      while let (reference, isThere) = try await group.next() {
        if isThere { present.insert(reference) }
        if let reference = rest.popFirst() { ask(reference) }
      }
      return present
    }
  }

  private static func isThere(_ reference: Reference, on client: Client) async throws -> Bool {
    let response = try await client.request("HEAD", "/v1/objects/\(reference)")
    switch response.status {
    case 200: return true
    case 404: return false
    default: throw Problem(response)
    }
  }
}

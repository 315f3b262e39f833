import Expressions
import HTTPServer
import KeyValueModel
import Tokens

/// Reads how long an object is to last: `Keyway-Lifetime`, or `lifetime` in a transaction (the specification,
/// section 3).
struct LifetimeReader: Sendable {
  let streams: StreamRegistry
  let requester: Requester

  private static let prefix = "stream="
  private static let rule =
    "is the seconds that the object is to last, 1 to \(Lifetime.maximumSeconds), stream= with the name of a stream "
    + "that is there, or none"

  /// What the header of a request for an object says; nil where there is none. Throws `invalid-value`.
  func operation(of request: borrowing Request, on reference: Reference) throws(Problem) -> [Operation] {
    guard let text = request.header(.keywayLifetime) else { return [] }
    guard let lifetime = lifetime(text, seconds: Self.seconds(text)) else {
      throw Self.invalidHeader
    }
    return [.lifetime(reference, lifetime)]
  }

  /// What is answered where the header says none of that, or names a stream that is not there.
  private static var invalidHeader: Problem { Problem(.invalidValue, "Keyway-Lifetime \(rule)") }

  /// The first stream that a write names for an object to last with, and what is answered where there is none of that
  /// name; nil where it names none. `isTransaction` says that operations in the body may name one.
  static func stream(
    namedBy request: borrowing Request, isTransaction: Bool
  ) -> (name: String, unknown: Problem)? {
    if let text = request.header(.keywayLifetime) {
      return text.hasPrefix(prefix) ? (String(text.dropFirst(prefix.count)), invalidHeader) : nil
    }
    guard isTransaction, mayHavePrefix(request.body()), let body = try? TransactionHandler.body(of: request),
      case .array(let elements)? = body["operations"]
    else { return nil }
    for (index, element) in elements.enumerated() {
      guard case .object(let members) = element, case .string(let text)? = members["lifetime"], text.hasPrefix(prefix)
      else { continue }
      var error = invalidMember
      error.operation = index
      return (String(text.dropFirst(prefix.count)), Problem(error))
    }
    return nil
  }

  /// Whether a JSON text may have the word that a stream's name stands behind: JSON can write any letter as a number.
  private static func mayHavePrefix(_ body: [UInt8]) -> Bool {
    body.firstRange(of: Array(prefix.utf8)) != nil || body.firstRange(of: Array("\\u00".utf8)) != nil
  }

  private static var invalidMember: ModelError { ModelError(.invalidValue, "'lifetime' \(rule)") }

  /// Throws `invalid-value`, with `remark`, where a request has the header and is not of a whole object: else the
  /// object would seem to have got that lifetime.
  static func refuse(_ request: borrowing Request, _ remark: String) throws(Problem) {
    guard request.header(.keywayLifetime) != nil else { return }
    throw Problem(.invalidValue, "Keyway-Lifetime goes with PUT, POST and PATCH of an object; \(remark)")
  }

  /// What `lifetime` of an operation says. Throws `invalid-value`.
  func lifetime(_ value: Value) throws(ModelError) -> Lifetime {
    var found: Lifetime?
    switch value {
    case .integer(let seconds): found = lifetime("", seconds: seconds)
    case .string(let text): found = lifetime(text, seconds: nil)
    default: break
    }
    guard let found else { throw Self.invalidMember }
    return found
  }

  private func lifetime(_ text: String, seconds: Int64?) -> Lifetime? {
    if let seconds { return (1...Lifetime.maximumSeconds).contains(seconds) ? .seconds(seconds) : nil }
    if text == "none" { return .unlimited }
    guard text.hasPrefix(Self.prefix),
      let id = streams.services.names.id(of: String(text.dropFirst(Self.prefix.count))),
      streams.isThere(id), requester.mayUse(id, of: streams)
    else { return nil }
    return .stream(id.number)
  }

  /// Digits alone; nil for everything else.
  private static func seconds(_ text: String) -> Int64? {
    guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(text)
  }
}

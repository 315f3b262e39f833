import CEL
import Glibc
package import HTTPServer
import KeyValueModel

/// Reads the lifetime of an object: `Keyway-Lifetime`, or `lifetime` in a transaction (the specification, section 3).
package struct LifetimeReader: Sendable {
  let streams: StreamRegistry
  let requester: Requester
  /// The streams of other nodes that the write may name, by name.
  let named: [String: UInt64]

  private static let prefix = "stream="
  private static let rule =
    "must be a number of seconds from 1 to \(Lifetime.maximumSeconds), stream= with the name of an existing "
    + "stream, or none"

  /// Returns the operation for the header of a request for an object, or none without the header. Throws
  /// `invalid-value`.
  func operation(of request: borrowing Request, on reference: Reference) throws(Problem) -> [Operation] {
    guard let text = request.header(.keywayLifetime) else { return [] }
    guard let lifetime = lifetime(text, seconds: Self.seconds(text)) else {
      throw Problem(.invalidValue, "Keyway-Lifetime \(Self.rule)")
    }
    return [.lifetime(reference, lifetime)]
  }

  /// Returns the names of the streams to which a write ties the lifetime of objects, whether or not they exist. With
  /// `isTransaction`, operations in the body may name streams too.
  package static func streams(namedBy request: borrowing Request, isTransaction: Bool) -> [String] {
    if let text = request.header(.keywayLifetime) {
      return text.hasPrefix(prefix) ? [String(text.dropFirst(prefix.count))] : []
    }
    guard isTransaction, mayHavePrefix(request.body()), let body = try? TransactionHandler.body(of: request),
      case .array(let elements)? = body["operations"]
    else { return [] }
    return elements.compactMap { element in
      guard case .object(let members) = element, case .string(let text)? = members["lifetime"], text.hasPrefix(prefix)
      else { return nil }
      return String(text.dropFirst(prefix.count))
    }
  }

  /// Returns true if a JSON text may contain the prefix of a stream's name. JSON can escape any letter as a number.
  private static func mayHavePrefix(_ body: [UInt8]) -> Bool {
    body.contains(Array(prefix.utf8), foundBy: prefix.utf8.count - 1) || body.contains(Array("\\u00".utf8), foundBy: 0)
  }

  /// Throws `invalid-value`, with `remark`, if a request has the header and does not write a whole object. Otherwise
  /// the object would seem to have got that lifetime.
  static func refuse(_ request: borrowing Request, _ remark: String) throws(Problem) {
    guard request.header(.keywayLifetime) != nil else { return }
    throw Problem(.invalidValue, "Keyway-Lifetime is allowed only for PUT, POST and PATCH of an object; \(remark)")
  }

  /// Returns the value of an operation's `lifetime`. Throws `invalid-value`.
  func lifetime(_ value: Value) throws(ModelError) -> Lifetime {
    let found =
      if case .string(let text) = value { lifetime(text, seconds: nil) } else {
        value.wholeNumber.flatMap { lifetime("", seconds: $0) }
      }
    guard let found else { throw ModelError(.invalidValue, "'lifetime' \(Self.rule)") }
    return found
  }

  private func lifetime(_ text: String, seconds: Int64?) -> Lifetime? {
    if let seconds { return (1...Lifetime.maximumSeconds).contains(seconds) ? .seconds(seconds) : nil }
    if text == "none" { return .unlimited }
    guard text.hasPrefix(Self.prefix) else { return nil }
    let name = String(text.dropFirst(Self.prefix.count))
    if let number = named[name] { return .stream(number) }
    guard let id = streams.services.names.id(of: name), streams.exists(id), requester.mayUse(id, of: streams)
    else { return nil }
    return .stream(id.number)
  }

  /// Returns the number of a text of 1 to 18 decimal digits, or nil for any other text.
  private static func seconds(_ text: String) -> Int64? {
    guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int64(text)
  }
}

extension [UInt8] {
  /// Returns true if the array contains these bytes. Searches for the byte of `word` at `index`, which should be a rare
  /// one. `memchr` is many times as fast as `firstRange(of:)`, which took longer to search a body than parsing its
  /// JSON.
  fileprivate func contains(_ word: [UInt8], foundBy index: Int) -> Bool {
    withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress else { return false }
      var place = index
      while place < count, let found = memchr(base + place, Int32(word[index]), count - place) {
        let start = UnsafeRawPointer(found) - base - index
        if count - start < word.count { return false }
        if memcmp(base + start, word, word.count) == 0 { return true }
        place = start + index + 1
      }
      return false
    }
  }
}

import KeyValueModel
import TestKit

/// A transaction as `/v1/journal` gives it, and what it did to registers.
struct JournalLine: Hashable, Sendable {
  var revision: Int
  /// What it left in the registers that it wrote; nil is absence.
  var leaves: [String: Int?]
  var text: String

  /// A line; throws where it is none, or does what no request of the test asks for.
  init(_ text: String) throws(BrokenPromise) {
    self.text = text
    let json = (try? Value(json: text)) ?? .null
    guard let revision = json["revision"].whole else { throw BrokenPromise("no line of a journal: \(text)") }
    self.revision = revision
    leaves = [:]
    for operation in json["operations"].items {
      guard let reference = operation["object"].text, reference.hasPrefix("Register/") else { continue }
      let register = String(reference.dropFirst("Register/".count))
      switch operation["op"].text {
      case "put", "create", "patch": leaves[register] = .some(operation["value"]["value"].whole)
      case "set" where operation["keyPath"].text == "value": leaves[register] = .some(operation["value"].whole)
      case "delete": leaves[register] = .some(nil)
      case "require": break
      default: throw BrokenPromise("no request asked for this: \(text)")
      }
    }
  }
}

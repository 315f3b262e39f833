import Foundation
import HTTPTypes

/// The token that this node shows another one. `nodes.tokenFile`.
struct NodeToken: Sendable {
  private let file: String?

  /// The token in a file, or `Node.Options.none`.
  init(file: String) { self.file = file == Node.Options.none ? nil : file }

  /// True if there is a file.
  var isThere: Bool { file != nil }

  /// What a request to the other node has of it; nothing where there is none. The file is read each time, so that a
  /// token can be replaced before it expires. Throws a fault by which nothing was sent, where that cannot be read or
  /// does not have one token.
  var fields: [(name: String, value: String)] { get throws(NodeFault) { try fields(named: .authorization) } }

  /// Returns the same in another field, for a request whose own credentials are a client's.
  func fields(named name: HTTPField.Name) throws(NodeFault) -> [(name: String, value: String)] {
    guard let file else { return [] }
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw NodeFault("\(file) (nodes.tokenFile) cannot be read", isUnsent: true)
    }
    let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
      throw NodeFault("\(file) (nodes.tokenFile) does not have one token", isUnsent: true)
    }
    return [(name.rawName, "Bearer \(token)")]
  }
}

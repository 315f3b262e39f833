import Foundation
import HTTPTypes

/// The token that this node shows another one. `nodes.tokenFile`.
struct NodeToken: Sendable {
  private let file: String?

  /// The token in a file, or `Node.Options.none`.
  init(file: String) { self.file = file == Node.Options.none ? nil : file }

  /// What a request to the other node has of it; nothing where there is none. The file is read each time, so that a
  /// token can be replaced before it expires. Throws a fault by which nothing was sent, where that cannot be read.
  var fields: [(name: String, value: String)] {
    get throws(NodeFault) {
      guard let file else { return [] }
      guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
        throw NodeFault("\(file) (nodes.tokenFile) cannot be read", isUnsent: true)
      }
      return [
        (HTTPField.Name.authorization.rawName, "Bearer \(text.trimmingCharacters(in: .whitespacesAndNewlines))")
      ]
    }
  }
}

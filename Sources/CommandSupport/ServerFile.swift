package import ArgumentParser
import Foundation
import KeyValueModel
import Yams

/// What the configuration file of a server says of its address.
package struct ServerFile: Hashable, Sendable {
  /// The file that `keyway serve` reads in the current folder.
  package static let name = "keyway.yaml"

  /// The address that the server listens on; nil where it is not said.
  package var host: String?
  /// The port, as it is written.
  package var port: String?

  /// A file that says nothing.
  package init() {}

  /// Takes the address from the text of a file. Throws a `ValidationError` where that is no YAML.
  package init(text: String) throws(ValidationError) {
    let root: Node?
    do throws(YAMLMistake) {
      root = try YAMLDocument.root(of: text)
    } catch {
      throw ValidationError("\(Self.name):\(error.line): \(error.message); --server names the server without that file")
    }
    host = root?["host"]?.scalar?.string
    port = root?["port"]?.scalar?.string
  }

  /// The file of the current folder; one that says nothing where there is none.
  package static func inCurrentFolder() throws(ValidationError) -> ServerFile {
    guard FileManager.default.fileExists(atPath: name) else { return ServerFile() }
    guard let data = FileManager.default.contents(atPath: name) else {
      throw ValidationError("\(name), which may say where the server is, cannot be read; --server names it")
    }
    return try ServerFile(text: String(decoding: data, as: UTF8.self))
  }
}

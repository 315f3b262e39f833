package import ArgumentParser
import Foundation
import KeyValueModel
import Yams

/// The address of a command's server, from the environment and the configuration file of the folder.
package enum ServerAddress {
  /// The default: the address that `keyway serve` listens on by default.
  private static let host = "127.0.0.1"
  private static let port = "8080"

  /// Returns the URL of the server: `KEYWAY_SERVER`, or the one that `KEYWAY_HOST` and `KEYWAY_PORT` make, with which a
  /// server is started in the same environment. Parts that they leave open come from `file`, with which a server is
  /// started in the same folder. An empty variable counts as not set, and so does one of Kubernetes
  /// (`ServiceVariable`). For an address that means every interface (`0.0.0.0`, `::`) the loopback is used. Throws a
  /// `ValidationError` if host or port do not name a server that can be requested, and what `file` throws.
  package static func url(
    in environment: [String: String], file: () throws(ValidationError) -> ServerFile = { ServerFile() }
  ) throws(ValidationError) -> String {
    func variable(_ name: String) -> String? {
      environment[name].flatMap { $0.isEmpty || ServiceVariable.matches(name, $0) ? nil : $0 }
    }
    if let server = variable("KEYWAY_SERVER") { return server }
    let (givenHost, givenPort) = (variable("KEYWAY_HOST"), variable("KEYWAY_PORT"))
    let file = givenHost == nil || givenPort == nil ? try file() : ServerFile()
    let host = givenHost ?? file.host ?? Self.host
    guard !host.hasPrefix("unix:") else {
      let source = givenHost == nil ? "host in \(ServerFile.name)" : "KEYWAY_HOST"
      throw ValidationError("\(source) is the socket \(host), to which commands cannot connect; give --server a URL")
    }
    let port = givenPort ?? file.port ?? Self.port
    guard let number = UInt16(port), number > 0 else {
      let source = givenPort == nil ? "port in \(ServerFile.name)" : "KEYWAY_PORT"
      throw ValidationError("\(source) is \(port), which is not a valid port; give --server a URL")
    }
    return "http://\(reachable(host)):\(number)"
  }

  /// Returns a host as it is written in a URL (RFC 3986 §3.2.2).
  private static func reachable(_ host: String) -> String {
    switch host {
    case "0.0.0.0": "127.0.0.1"
    case "::", "[::]": "[::1]"
    case _ where host.contains(":") && !host.hasPrefix("["): "[\(host)]"
    default: host
    }
  }
}

/// The address of a server in its configuration file.
package struct ServerFile: Hashable, Sendable {
  /// The file that `keyway serve` reads in the current folder.
  package static let name = "keyway.yaml"

  /// The address that the server listens on; nil if the file does not set it.
  package var host: String?
  /// The port, as it is written; nil if the file does not set it.
  package var port: String?

  /// Creates an empty file.
  package init() {}

  /// Reads the address from the text of a file. Throws a `ValidationError` if that is not YAML.
  package init(text: String) throws(ValidationError) {
    let root: Node?
    do throws(YAMLMistake) {
      root = try YAMLDocument.root(of: text)
    } catch {
      throw ValidationError("\(Self.name):\(error.line): \(error.message); use --server to do without that file")
    }
    host = root?["host"]?.scalar?.string
    port = root?["port"]?.scalar?.string
  }

  /// Returns the file of the current folder; an empty one if it does not exist.
  package static func inCurrentFolder() throws(ValidationError) -> ServerFile {
    guard FileManager.default.fileExists(atPath: name) else { return ServerFile() }
    guard let data = FileManager.default.contents(atPath: name) else {
      throw ValidationError("\(name), which may have the server's address, cannot be read; use --server instead")
    }
    return try ServerFile(text: String(decoding: data, as: UTF8.self))
  }
}

/// Variables that Kubernetes sets in each container of a namespace for a service whose name is `keyway` or begins with
/// `keyway-`. They give the address of the service, and are not settings of Keyway.
package enum ServiceVariable {
  /// True if this is one of them, by its name (`KEYWAY_SERVICE_HOST`, `KEYWAY_PORT_8080_TCP_ADDR`), or, for
  /// `KEYWAY_PORT`, which is also a setting, by its value: `tcp://10.96.0.10:8080`.
  package static func matches(_ name: String, _ value: String) -> Bool {
    let service = /KEYWAY(_[A-Z0-9_]+)?_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)/
    let port = /KEYWAY(_[A-Z0-9_]+)?_PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?/
    let address = /(tcp|udp|sctp):\/\//
    if name.hasPrefix("KEYWAY_"), name.hasSuffix("_PORT"), value.prefixMatch(of: address) != nil { return true }
    return name.wholeMatch(of: service) != nil || name.wholeMatch(of: port) != nil
  }
}

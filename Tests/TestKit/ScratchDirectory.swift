import Foundation
import Glibc

/// A new directory that is removed, with its contents, when this object is released.
package final class ScratchDirectory: Sendable {
  /// The absolute path of the directory.
  package let path: String

  /// Creates a directory with a unique name in `parent`, or in the system's directory for temporary files.
  package init(in parent: String? = nil) throws(LoopbackError) {
    let parent = parent ?? FileManager.default.temporaryDirectory.path
    var template = Array((URL(fileURLWithPath: parent).path + "/keyway-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw LoopbackError(call: "make a directory in \(parent)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { remove() }

  /// Removes it now.
  package func remove() { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of a file in it, which need not exist.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Creates a directory in it and returns its path.
  package func directory(_ name: String) throws(LoopbackError) -> String {
    guard mkdir(file(name), 0o700) == 0 else { throw LoopbackError(call: "make the directory \(name)") }
    return file(name)
  }

  /// Writes a file in it and returns its path.
  @discardableResult
  package func write(_ text: String, to name: String) throws(LoopbackError) -> String {
    do { try text.write(toFile: file(name), atomically: false, encoding: .utf8) } catch {
      throw LoopbackError("\(file(name)): \(error)")
    }
    return file(name)
  }
}

/// A certificate authority, and a certificate that it has signed for a server on this machine. The files are removed
/// when this object is released.
package final class LoopbackCertificates: Sendable {
  private let scratch: ScratchDirectory

  /// Makes the files with openssl(1). The server's certificate is for the names given, such as `DNS:localhost` and
  /// `IP:127.0.0.1`.
  package init(for names: [String] = ["DNS:localhost", "IP:127.0.0.1"]) throws(LoopbackError) {
    scratch = try ScratchDirectory()
    try request(["-subj", "/CN=Test authority", "-keyout", scratch.file("authority.key"), "-out", authority])
    try request([
      "-CA", authority, "-CAkey", scratch.file("authority.key"), "-subj", "/CN=Test server", "-addext",
      "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=\(names.joined(separator: ","))", "-keyout", key,
      "-out", certificate,
    ])
  }

  /// The path of the authority's certificate, in PEM.
  package var authority: String { scratch.file("authority.pem") }
  /// The path of the server's certificate, in PEM.
  package var certificate: String { scratch.file("server.pem") }
  /// The path of the server's key, in PEM.
  package var key: String { scratch.file("server.key") }

  private func request(_ arguments: [String]) throws(LoopbackError) {
    let common = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    let child = try ChildProcess(ChildProcess.find("openssl") ?? "/usr/bin/openssl", common + arguments)
    guard try child.exitStatus() == 0 else { throw LoopbackError("openssl: \(child.errors)") }
  }
}

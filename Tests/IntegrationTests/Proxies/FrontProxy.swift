import Foundation
import TestKit

/// A proxy with TLS and HTTP/2 in front of a server, with a copy of its file in `Config/proxy`, or with another
/// configuration.
final class FrontProxy {
  enum Program: String, CaseIterable, Sendable {
    case nginx, caddy

    fileprivate var path: String { ChildProcess.find(rawValue) ?? "/usr/sbin/\(rawValue)" }

    /// Returns the text of its file.
    func configuration() throws -> String {
      let name = self == .nginx ? "nginx.conf" : "Caddyfile"
      return try String(contentsOfFile: PackageFolder.root + "/Config/proxy/" + name, encoding: .utf8)
    }
  }

  /// The address of the server.
  enum Upstream: Sendable {
    case port(UInt16)
    /// Several servers, which nginx uses in rotation.
    case ports([UInt16])
    case socket(String)

    /// Returns the address in the syntax of a program.
    fileprivate func text(for program: Program) -> String {
      switch self {
      case .port(let port): "127.0.0.1:\(port)"
      case .ports(let ports): ports.map { "127.0.0.1:\($0)" }.joined(separator: ";\n    server ")
      case .socket(let path): program == .nginx ? "unix:\(path)" : "unix/\(path)"
      }
    }
  }

  /// The name that requests use.
  static let name = "keyway.example.org"

  let program: Program
  let port: UInt16
  private let scratch: ScratchDirectory
  private let name: String
  private let certificates: LoopbackCertificates?
  private var child: ChildProcess?

  /// Creates its files for a server. `text` replaces the configuration of the file. Requests use `name`, for which it
  /// has the given certificate, or a self-signed one.
  init(
    _ program: Program, upstream: Upstream, text: String? = nil, name: String = FrontProxy.name,
    certificates: LoopbackCertificates? = nil
  ) throws {
    (self.program, self.name, self.certificates) = (program, name, certificates)
    scratch = try ScratchDirectory()
    port = try LoopbackPort.free()
    if certificates == nil { try makeCertificate() }
    let text = try adapted(text ?? program.configuration()).replacing(
      "127.0.0.1:8080", with: upstream.text(for: program))
    _ = try scratch.write(text, to: "configuration")
  }

  private func makeCertificate() throws {
    let made = try ChildProcess.run(
      ChildProcess.find("openssl") ?? "/usr/bin/openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
        "/CN=\(name)", "-addext", "subjectAltName=DNS:\(name)", "-keyout", key, "-out", certificate,
      ])
    guard made.status == 0 else { throw LoopbackError("openssl: \(made.errors)") }
  }

  /// The path of the certificate.
  var certificate: String { certificates?.certificate ?? scratch.file("certificate.pem") }
  private var key: String { certificates?.key ?? scratch.file("key.pem") }
  private var file: String { scratch.file("configuration") }

  /// Adapts the configuration to the test's port and certificate, and makes it write only to the test's folder.
  private func adapted(_ text: String) -> String {
    switch program {
    case .nginx:
      let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
        "  \($0)_temp_path \(scratch.path)/\($0);\n"
      }
      // Only its own user can read the test's folder.
      let user = geteuid() == 0 ? "user root;\n" : ""
      return user
        + text.replacing("http {\n", with: "http {\n  access_log off;\n" + folders.joined())
        .replacing("listen 443", with: "listen 127.0.0.1:\(port)")
        .replacing("    listen [::]:443 ssl http2;\n", with: "")
        .replacing("/etc/keyway/tls/fullchain.pem", with: certificate)
        .replacing("/etc/keyway/tls/privkey.pem", with: key)
    case .caddy:
      let options = "{\n\tadmin off\n\tauto_https disable_redirects\n"
      let hasOptions = text.contains("\n{\n")
      return (hasOptions ? text.replacing("\n{\n", with: "\n" + options) : options + "}\n" + text)
        .replacing(
          "\(Self.name) {\n", with: "https://\(name):\(port) {\n\tbind 127.0.0.1\n\ttls \(certificate) \(key)\n")
    }
  }

  private func run(_ arguments: [String]) throws -> ChildProcess {
    // Caddy stores its data below its home folder.
    try ChildProcess.start(
      program.path, arguments, environment: ["HOME": scratch.path, "XDG_DATA_HOME": scratch.path],
      folder: scratch.path)
  }

  private var nginxOptions: [String] {
    ["-p", scratch.path, "-c", file, "-e", "stderr", "-g", "daemon off; pid \(scratch.file("pid"));"]
  }

  /// Returns the program's errors about its configuration, or nil if it is valid.
  func mistakes() throws -> String? {
    let child = try run(
      program == .nginx
        ? ["-t"] + nginxOptions : ["validate", "--config", file, "--adapter", "caddyfile"])
    return try child.exitStatus() == 0 ? nil : child.output + child.errors
  }

  /// Starts it, and waits until it listens.
  func start() throws {
    let child = try run(
      program == .nginx ? nginxOptions : ["run", "--config", file, "--adapter", "caddyfile"])
    try child.awaitReady { _ = try WireSocket(port: port) }
    self.child = child
  }

  /// Ends it by a signal, with all its connections.
  func stop(_ signal: Int32 = SIGTERM) throws {
    guard let child else { return }
    child.send(signal)
    _ = try child.exitStatus()
    self.child = nil
  }

  /// Starts curl with HTTP/2. The head of the response goes to standard error.
  func curl(_ target: String, _ arguments: String...) throws -> ChildProcess {
    try ChildProcess.start(
      "/usr/bin/curl",
      [
        "-sS", "-N", "--http2", "-D", "/dev/stderr", "--cacert", certificate, "--resolve",
        "\(Self.name):\(port):127.0.0.1",
      ] + arguments + ["https://\(Self.name):\(port)\(target)"])
  }
}

/// A certificate authority, and a certificate that it has signed for a server on this machine. The files are removed
/// when nothing holds this object any more.
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

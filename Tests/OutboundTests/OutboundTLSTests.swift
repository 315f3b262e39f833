import Foundation
import TestKit
import Testing

@testable import Outbound

@Suite("Requests to other servers, with TLS") struct OutboundTLSTests {
  /// openssl's own server, which serves the files of a folder.
  private final class TLSServer {
    let port: UInt16
    private let scratch: ScratchDirectory
    private let child: ChildProcess

    init(_ certificates: LoopbackCertificates, _ options: String...) throws {
      scratch = try ScratchDirectory()
      port = try LoopbackPort.free()
      try scratch.write(String(repeating: "0123456789", count: 100_000), to: "large")
      child = try ChildProcess(
        ChildProcess.find("openssl") ?? "/usr/bin/openssl",
        [
          "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificates.certificate, "-key", certificates.key,
          "-WWW",
          "-quiet",
        ] + options, folder: scratch.path)
      let port = port
      try child.awaitReady { _ = try WireSocket(port: port) }
    }
  }

  private func get(
    _ origin: String, trusting file: String?, limit: Int = 1 << 20, pinned: String? = nil
  ) throws(OutboundFault) -> OutboundResponse {
    var request = OutboundRequest("GET", origin, "/large")
    request.pinnedAddress = pinned
    return try OutboundClient(caFile: file).send(request, limit: limit, before: .now + Deadline.patience)
  }

  private func fault(_ body: () throws(OutboundFault) -> Void) throws -> OutboundFault {
    try #require(#expect(throws: OutboundFault.self) { try body() })
  }

  @Test("A certificate that a trusted authority signed for the host is accepted, by name, address and pinned address")
  func trusted() throws {
    let certificates = try LoopbackCertificates(for: ["DNS:localhost", "IP:127.0.0.1", "DNS:nowhere.invalid"])
    let server = try TLSServer(certificates)
    for (host, pinned) in [("127.0.0.1", nil), ("localhost", "127.0.0.1"), ("nowhere.invalid", "127.0.0.1")] {
      let response = try get("https://\(host):\(server.port)", trusting: certificates.authority, pinned: pinned)
      #expect(response.status == 200 && response.body.count == 1_000_000)
    }
    let oversized = try fault { () throws(OutboundFault) in
      _ = try get("https://127.0.0.1:\(server.port)", trusting: certificates.authority, limit: 1_000)
    }
    #expect(oversized.kind == .oversized)
  }

  @Test("Any other certificate is refused, before anything was sent")
  func untrusted() throws {
    let (certificates, others) = (try LoopbackCertificates(for: ["DNS:localhost"]), try LoopbackCertificates())
    let server = try TLSServer(certificates)
    for (host, file) in [
      // Another authority, the system's authorities, another name, and an address that the certificate does not have.
      ("localhost", others.authority), ("localhost", nil), ("nowhere.invalid", certificates.authority),
      ("127.0.0.1", certificates.authority),
      // No file, and one that has no certificate.
      ("localhost", "/nowhere"), ("localhost", certificates.key),
    ] {
      let fault = try fault { () throws(OutboundFault) in
        _ = try get("https://\(host):\(server.port)", trusting: file, pinned: "127.0.0.1")
      }
      #expect(fault.kind == .untrusted && fault.isUnsent, "\(host), \(file ?? "none"): \(fault)")
    }
  }

  @Test("TLS of a version before 1.2 is refused, and what is not TLS at all")
  func versions() throws {
    let certificates = try LoopbackCertificates()
    let old = try TLSServer(certificates, "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0")
    let plain = try ScriptedServer([["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"]])
    for port in [old.port, plain.port] {
      let fault = try fault { () throws(OutboundFault) in
        _ = try get("https://127.0.0.1:\(port)", trusting: certificates.authority)
      }
      #expect(fault.kind == .unreachable && fault.isUnsent, "\(fault)")
    }
  }
}

import Foundation
import Glibc
import HTTPServer
import KeyValueModel
import KeywayServer
import TestKit
import Testing

/// A server on a Unix-domain socket.
@Suite("Sockets of this machine") struct UnixSocketTests {
  private func server(
    _ path: String, _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }
  ) throws -> TestServer {
    try TestServer(objects: []) {
      $0.host = "unix:\(path)"
      configure(&$0)
    }
  }

  private func mode(_ path: String) throws -> UInt32 {
    var status = stat()
    try #require(lstat(path, &status) == 0)
    return status.st_mode
  }

  @Test("It serves requests and streams under a file of mode 0660, which is gone after the stop")
  func serving() throws {
    let folder = try ScratchDirectory()
    let path = folder.path + "/k.sock"
    do {
      let server = try server(path)
      let client = WireClient(path: path, keepingAlive: server)
      #expect(try mode(path) == S_IFSOCK | 0o660)
      try client.must("PUT", "/v1/objects/Account/1", body: #"{"balance":1}"#)
      let stream = try client.stream("/v1/objects/Account/1/balance")
      _ = try first("change", of: stream)
      try client.must("PUT", "/v1/objects/Account/1/balance", body: "2")
      #expect(try first("change", of: stream).id == "\(server.epoch)-2")
      for host in ["localhost", "127.0.0.1:80"] {
        #expect(try client.send("GET", "/v1/status", ["Host": host]).status == 200)
      }
      for host in ["evil.example", "unix"] {
        #expect(try client.send("GET", "/v1/status", ["Host": host]).status == 421, "\(host)")
      }
    }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A socket that a process left behind is replaced; one that is in use, and another file, are not")
  func replacing() throws {
    let folder = try ScratchDirectory()
    let path = folder.path + "/k.sock"
    // Bound and closed, without removal of its file.
    let left = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(left, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(bound == 0)
    close(left)
    do {
      let running = try server(path)
      let client = WireClient(path: path, keepingAlive: running)
      #expect(try client.send("GET", "/healthz").status == 200)
      let error = #expect(throws: HTTPServerError.self) { try server(path) }
      #expect(error.map { "\($0)" }?.contains("another process listens there") == true)
      #expect(try client.send("GET", "/healthz").status == 200)
    }
    try "mine".write(toFile: path, atomically: true, encoding: .utf8)
    let error = #expect(throws: HTTPServerError.self) { try server(path) }
    #expect(error.map { "\($0)" }?.contains("is not a socket") == true)
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
    for path in ["", folder.path + "/" + String(repeating: "x", count: 120), folder.path + "/none/k.sock"] {
      #expect(throws: HTTPServerError.self) { try server(path) }
    }
  }

  @Test("A file that has replaced the socket's by the time of the stop stays")
  func anotherFile() throws {
    let folder = try ScratchDirectory()
    let path = folder.path + "/k.sock"
    do {
      let server = try server(path)
      try FileManager.default.removeItem(atPath: path)
      try "mine".write(toFile: path, atomically: true, encoding: .utf8)
      withExtendedLifetime(server) {}
    }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "mine")
  }

  @Test("Clients on it are one client without a token, and each identity with one")
  func shares() throws {
    let folder = try ScratchDirectory()
    let path = folder.path + "/k.sock"
    let guarded = try GuardedServer(objects: []) {
      $0.host = "unix:\(path)"
      $0.access.streams = 1
    }
    let client = WireClient(path: path, keepingAlive: guarded)
    let streams = try ["alice", "bob"].map { try client.stream("/v1/streams", guarded.bearer($0)) }
    let headers = guarded.bearer("alice").merging(["Accept": "text/event-stream"]) { $1 }
    #expect(try client.send("GET", "/v1/streams", headers).problem == "too-many-streams")
    withExtendedLifetime(streams) {}
  }
}

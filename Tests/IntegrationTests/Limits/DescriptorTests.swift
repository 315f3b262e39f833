import Foundation
import Glibc
import KeyValueModel
import TestKit
import Testing

@Suite("Without descriptors")
struct DescriptorTests {
  /// Starts a server that may have so many descriptors.
  private func server(descriptors: Int, port: UInt16) throws -> ChildProcess {
    let command =
      "ulimit -n \(descriptors) && exec '\(PackageFolder.keyway)' serve --store memory --port \(port)"
      + " --set request.seconds=3600"
    let child = try ChildProcess.start("/bin/bash", ["-c", command])
    try child.awaitReady { try WireClient(port: port).must("GET", "/readyz") }
    return child
  }

  private func descriptorCount(_ child: ChildProcess) -> Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(child.pid)/fd").count) ?? -1
  }

  /// Returns true if the server has closed a connection without a pending request.
  private func hasEnded(_ socket: WireSocket) -> Bool {
    var entry = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&entry, 1, 0) > 0
  }

  @Test("A connection for which no descriptor is left is closed, and the others are served; later ones get in again")
  func connections() throws {
    let roomy = try server(descriptors: 1024, port: LoopbackPort.free())
    let used = descriptorCount(roomy)
    let port = try LoopbackPort.free()
    // Room for a few connections, and fewer than the server would accept.
    let child = try server(descriptors: used + 6, port: port)
    let ready = WireRequest("GET", "/readyz")
    var served: [WireConnection] = []
    var closedCount = 0
    for _ in 0..<14 {
      let connection = try WireConnection(SocketAddress(port: port))
      do {
        try connection.must(ready)
        served.append(connection)
      } catch {
        // The request is neither left waiting, nor answered with a partial response.
        #expect(error.reason == .connectionClosed || error.reason == .connectionReset)
        closedCount += 1
      }
    }
    #expect(served.count >= 3 && closedCount >= 3)
    for connection in served { try connection.must(ready) }
    #expect(child.errors.matches(of: /no descriptor is left/).count <= 1)
    served.removeAll()
    #expect(
      Deadline().awaits { (try? WireConnection(SocketAddress(port: port)).must(ready)) != nil },
      "nothing is served any more")
    #expect(child.isRunning)
  }

  @Test("A server whose descriptors are all held by streams closes what comes next, and does not try for ever")
  func streams() throws {
    let roomy = try server(descriptors: 1024, port: LoopbackPort.free())
    let used = descriptorCount(roomy)
    let port = try LoopbackPort.free()
    let child = try server(descriptors: used + 6, port: port)
    var streams: [WireStream] = []
    for _ in 0..<14 {
      if let stream = try? WireClient(port: port).stream("/v1/objects/Account/1/balance") { streams.append(stream) }
    }
    #expect(streams.count >= 2)
    var idle: [WireSocket] = []
    for _ in 0..<10 { idle.append(try WireSocket(port: port)) }
    // They may be idle for an hour: a closed one was closed for lack of a descriptor.
    #expect(Deadline().awaits { idle.contains(where: hasEnded) })
    streams.removeAll()
    idle.removeAll()
    #expect(Deadline().awaits { (try? WireClient(port: port).must("GET", "/readyz")) != nil })
    #expect(child.isRunning)
  }
}

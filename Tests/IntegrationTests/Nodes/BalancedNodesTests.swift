import Foundation
import KeyValueModel
import TestKit
import Testing

/// Nodes behind a proxy that distributes requests in rotation.
@Suite("Nodes behind nginx", .timeLimit(.minutes(60))) struct BalancedNodesTests {
  /// A leader and two followers behind nginx, which sends a request to the next node if one is dead.
  private struct Group {
    let directory: ScratchDirectory
    let nodes: [NodeProcess]
    let proxy: FrontProxy

    init() throws {
      let folder = try ScratchDirectory()
      let settings = ["names": FrontProxy.name, "access.proxies": "127.0.0.1"]
      let leader = try NodeProcess("a", in: folder, settings: settings)
      let near = try NodeProcess("b", in: folder, following: leader.url, settings: settings)
      let far = try NodeProcess("c", in: folder, following: leader.url, settings: settings)
      for node in [leader, near, far] where !node.awaitReady() { throw LoopbackError("a node is not ready") }
      let text = try FrontProxy.Program.nginx.configuration()
      let proxy = try FrontProxy(
        .nginx, upstream: .ports([leader.port, near.port, far.port]),
        text: text.replacing("proxy_next_upstream off", with: "proxy_next_upstream error timeout"))
      try proxy.start()
      (directory, nodes, self.proxy) = (folder, [leader, near, far], proxy)
    }

    /// Opens a stream through nginx. Returns it with the index of its node.
    func reader(_ target: String) throws -> (node: Int, reader: ResumingReader) {
      let before = try streams()
      let reader = try ResumingReader(target, through: proxy)
      _ = try reader.values(until: 1)
      let after = try streams()
      let node = nodes.indices.first { after[$0] == before[$0] + 1 }
      return (try #require(node), reader)
    }

    private func streams() throws -> [Int] { try nodes.map { try $0.status["streams"].whole ?? -1 } }

    /// Sets the balance through nginx, and reads it through nginx with the cursor of the write. Expects that both
    /// succeed, and that the value is the one that was set.
    func write(_ value: Int) throws {
      let operation = #"{"op":"set","object":"Account/1","keyPath":"balance","value":\#(value)}"#
      let written = try proxy.curl("/v1/transactions", "--json", #"{"operations":[\#(operation)]}"#)
      #expect(try written.exitStatus() == 0)
      #expect(written.errors.hasPrefix("HTTP/2 200"), "\(value): \(written.errors)")
      let field = "keyway-cursor: "
      let line = written.errors.split(whereSeparator: \.isNewline).first { $0.hasPrefix(field) }
      let cursor = try #require(line?.dropFirst(field.count))
      let read = try proxy.curl("/v1/objects/Account/1/balance", "-H", "Keyway-Cursor: \(cursor)")
      #expect(try read.exitStatus() == 0)
      #expect(read.errors.hasPrefix("HTTP/2 200"), "\(value): \(read.errors)")
      #expect(read.lines.first == "\(value)")
    }
  }

  @Test("A follower is killed: clients of the others notice nothing, its own go on at another, and nothing is doubled")
  func death() throws {
    let group = try Group()
    let readers = try (0..<6).map { _ in try group.reader("/v1/objects/Account/1/balance") }
    // Each node has some of the readers.
    #expect(Set(readers.map(\.node)) == [0, 1, 2])
    for value in 1...8 { try group.write(value) }
    for (_, reader) in readers { #expect(try reader.values(until: 9).count == 9) }
    try group.nodes[1].kill()
    for value in 9...24 { try group.write(value) }
    for (_, reader) in readers { #expect(try reader.values(until: 25).count == 25) }
    try group.nodes[1].start()
    #expect(group.nodes[1].awaitReady())
    for value in 25...32 { try group.write(value) }
    for (node, reader) in readers {
      #expect(try reader.values(until: 33) == ["100"] + (1...32).map { "\($0)" }, "at node \(node)")
      #expect(node == 1 ? reader.connections > 1 : reader.connections == 1, "at node \(node)")
      #expect(!reader.events.contains { $0.field("event") == "reset" }, "at node \(node)")
      let ids = reader.events.compactMap { $0.field("id") }
      #expect(Set(ids).count == ids.count, "at node \(node)")
    }
    try group.proxy.stop()
  }
}

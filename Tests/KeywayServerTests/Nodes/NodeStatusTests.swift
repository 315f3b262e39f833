import Cluster
import Dispatch
import KeyValueModel
import Store
import Support
import TestKit
import Testing

@testable import KeywayServer

@Suite("The status of a node while others write", .timeLimit(.minutes(60)))
struct NodeStatusTests {
  /// The options of a leader, which store the node that they create.
  private struct LeaderOptions: NodeOptions {
    let node = Locked<(any Node)?>(nil)

    func makeNode(at site: NodeSite) throws -> any Node {
      var options = ClusterOptions()
      options.followers = true
      let made = try options.makeNode(at: site)
      node.withLock { $0 = made }
      return made
    }
  }

  @Test("A leader is never behind itself, whatever is committed while it describes itself")
  func committing() throws {
    let options = LeaderOptions()
    let server = try TestServer { $0.node = options }
    let node = try #require(options.node.withLock { $0 })
    let store = server.server.store
    let account = try #require(Reference("Account/1"))
    let isDone = Locked(false)
    let failures = TestThreads.run(2) { index in
      if index == 0 {
        let transaction = Transaction([.set(account, keyPath: "visits", .integer(1))])
        while !isDone.withLock({ $0 }) {
          let done = DispatchSemaphore(value: 0)
          if store.submit(transaction, finish: { _, _, _ in done.signal() }) { done.wait() }
        }
        return
      }
      defer { isDone.withLock { $0 = true } }
      let last = store.revision + 10_000
      while store.revision < last { #expect(node.status(store)["behind"] == .integer(0)) }
    }
    #expect(failures.isEmpty)
    withExtendedLifetime(server) {}
  }
}

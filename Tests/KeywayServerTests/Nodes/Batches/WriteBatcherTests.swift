import Foundation
import HTTPServer
import KeyValueModel
import Store
import Support
import TestKit
import Testing

@testable import Cluster
@testable import KeywayServer

/// The writes that a node forwards to another, and the responses of its clients.
@Suite("Sending writes together", .timeLimit(.minutes(60))) struct WriteBatcherTests {
  /// A sender of numbered writes that stores their results.
  private final class Clients: Sendable {
    let batcher: WriteBatcher
    let results = Locked<[Int: Result<NodeAnswer, NodeFault>]>([:])
    let left = Locked<Set<Int>>([])

    init(
      _ node: ScriptedNode, asking: Duration? = nil, token: String = ClusterOptions.none,
      taking: RecordTaking? = nil,
      _ change: (inout ClusterOptions.ForwardingLimits) -> Void = { _ in }
    ) throws {
      var limits = ClusterOptions.ForwardingLimits()
      change(&limits)
      batcher = WriteBatcher(
        try node.client(), limits, WriteBatcher.Times(silence: .seconds(30), asking: asking),
        token: NodeToken(file: token), taking)
    }

    /// Sends a write. Returns false if it is refused.
    @discardableResult
    func send(_ number: Int, of client: Int = 1) -> Bool {
      guard let since = Cursor("e-1") else { return false }
      var request = NodeRequest("PUT", "/v1/objects/Note/\(number)")
      request.body = Array("\(number)".utf8)
      let write = OutgoingWrite(request: request, write: PassedWrite(since: since)) { [left] in
        left.withLock { !$0.contains(number) }
      } finish: { [self] result in
        results.withLock { $0[number] = result }
      }
      return batcher.submit(write, of: ClientAddress(number: UInt8(client)))
    }

    func await(_ count: Int) -> Bool { Deadline().awaits { self.results.withLock { $0.count } == count } }

    func answer(to number: Int) -> NodeAnswer? { results.withLock { try? $0[number]?.get() } }

    func fault(of number: Int) -> NodeFault? {
      if case .failure(let fault)? = results.withLock({ $0[number] }) { fault } else { nil }
    }
  }

  /// Makes a node whose first responses wait for a semaphore.
  private static func held(
    _ count: Int, _ script: @escaping ScriptedNode.Script = { ScriptedNode.echo($1) }
  ) throws -> (node: ScriptedNode, go: DispatchSemaphore) {
    let go = DispatchSemaphore(value: 0)
    let node = try ScriptedNode { number, request in
      if number < count { go.wait() }
      return script(number, request)
    }
    return (node, go)
  }

  /// Sends so many requests to a node that holds them, and waits until they have arrived.
  private static func occupy(_ clients: Clients, _ node: ScriptedNode, _ count: Int) {
    for number in 0..<count {
      clients.send(number)
      #expect(Deadline().awaits { node.requests.withLock { $0.count } == number + 1 })
    }
  }

  /// Limits connections to two. No response of these tests is late enough to open another.
  private static func two(_ limits: inout ClusterOptions.ForwardingLimits) { limits.connections = 2 }

  /// Sends so many writes to a node: two alone and the others then in a batch. `script` answers the batch and later
  /// requests. Waits until all have their responses.
  private static func batched(
    _ count: Int, _ script: @escaping ScriptedNode.Script
  ) throws -> (node: ScriptedNode, clients: Clients) {
    let (node, go) = try held(2, script)
    let clients = try Clients(node, two)
    occupy(clients, node, 2)
    for number in 2..<count { clients.send(number) }
    for _ in 0..<2 { go.signal() }
    #expect(clients.await(count))
    return (node, clients)
  }

  @Test("One that waits goes as it is; those that come while two are under way go together, each with its answer")
  func together() throws {
    let (node, go) = try Self.held(2)
    let clients = try Clients(node, Self.two)
    Self.occupy(clients, node, 2)
    for number in 2..<50 { #expect(clients.send(number)) }
    #expect(clients.batcher.count == 50)
    go.signal()
    go.signal()
    #expect(clients.await(50))
    for number in 0..<50 { #expect(clients.answer(to: number)?.body == Array("\(number)".utf8)) }
    let requests = node.requests.withLock { $0 }
    #expect(requests[0].line.hasPrefix("PUT /v1/objects/Note/0 ") && requests[1].writes == nil)
    #expect(requests.count == 3 && requests[2].writes?.count == 48)
    #expect(requests[2].writes?.map(\.target) == (2..<50).map { "/v1/objects/Note/\($0)" })
    #expect(requests[2].writes?.allSatisfy { $0["keyway-request"] != nil } == true)
    #expect(Deadline().awaits { clients.batcher.count == 0 })
  }

  @Test("A batch that has no answer holds up no other: a further connection is opened, and no more than may be")
  func stalls() throws {
    let (node, go) = try Self.held(3)
    let clients = try Clients(node) { $0.connections = 4 }
    for number in 0..<3 {
      clients.send(number)
      #expect(Deadline().awaits { node.requests.withLock { $0.count } == number + 1 })
    }
    // Three are held up for good, and later ones are answered.
    for number in 3..<10 { clients.send(number) }
    #expect(clients.await(7))
    #expect(node.connections.withLock { $0 } == 4)
    for _ in 0..<3 { go.signal() }
    #expect(clients.await(10))
  }

  @Test("Of those that wait, so many at most, and of each client; who has left is not sent")
  func limits() throws {
    let (node, go) = try Self.held(2)
    let clients = try Clients(node) {
      Self.two(&$0)
      ($0.waiting, $0.waitingPerClient) = (5, 3)
    }
    Self.occupy(clients, node, 2)
    #expect((2..<6).map { clients.send($0) } == [true, true, true, false])
    #expect((6..<9).map { clients.send($0, of: 2) } == [true, true, false])
    clients.left.withLock { $0 = [3, 7] }
    go.signal()
    go.signal()
    #expect(clients.await(5))
    #expect(node.requests.withLock { $0.last?.writes?.map(\.target) } == [2, 6, 4].map { "/v1/objects/Note/\($0)" })
  }

  @Test("A node that does not know batches, or not these, gets each write alone", arguments: [404, 405, 400, 413])
  func older(status: Int) throws {
    let (node, clients) = try Self.batched(10) { _, request in
      request.writes == nil ? ScriptedNode.echo(request) : ScriptedNode.answer(status)
    }
    for number in 0..<10 { #expect(clients.answer(to: number)?.body == Array("\(number)".utf8)) }
    #expect(node.requests.withLock { $0.count { $0.line.contains(WriteBatch.target) } } == 1)
    #expect(node.requests.withLock { $0.count } == 11)
  }

  @Test("A response to a batch as a whole goes to each of its writes", arguments: [429, 503])
  func refused(status: Int) throws {
    let (_, clients) = try Self.batched(6) { _, request in
      request.writes == nil ? ScriptedNode.echo(request) : ScriptedNode.answer(status)
    }
    for number in 2..<6 { #expect(clients.answer(to: number)?.status == status) }
  }

  @Test(
    "If a batch was received and got no valid response, none of its writes counts as unsent",
    arguments: [nil, ScriptedNode.answer(204), ScriptedNode.answer(200, Array("none".utf8))])
  func faults(answer: [UInt8]?) throws {
    let (_, clients) = try Self.batched(6) { number, request in number == 2 ? answer : ScriptedNode.echo(request) }
    for number in 2..<6 { #expect(clients.fault(of: number)?.isUnsent == false) }
  }

  @Test("If no node listens, all writes are unsent")
  func unreachable() throws {
    let port = try LoopbackPort.free()
    let nobody = NodeClient(try NodeAddress("http://127.0.0.1:\(port)"), keeping: 1)
    let faults = Locked<[NodeFault]>([])
    let sender = WriteBatcher(
      nobody, ClusterOptions.ForwardingLimits(), WriteBatcher.Times(silence: .seconds(5)),
      token: NodeToken(file: ClusterOptions.none))
    for _ in 0..<5 {
      let write = OutgoingWrite(
        request: NodeRequest("PUT", "/x"), write: PassedWrite(since: try #require(Cursor("e-1"))), begin: { true }
      ) {
        if case .failure(let fault) = $0 { faults.withLock { $0.append(fault) } }
      }
      #expect(sender.submit(write, of: .unknown))
    }
    #expect(Deadline().awaits { faults.withLock { $0.count } == 5 })
    #expect(faults.withLock { $0.allSatisfy(\.isUnsent) })
  }

  @Test("Writes whose responses are lost are sent again together, until each outcome is known")
  func asking() throws {
    let (node, go) = try Self.held(2) { number, request in
      switch number {
      case 2: nil
      case 3: ScriptedNode.answer(503)
      // The outcome of one of them is still unknown.
      case 4: ScriptedNode.echo(request) { $0.body == Array("3".utf8) ? 503 : 200 }
      default: ScriptedNode.echo(request)
      }
    }
    let clients = try Clients(node, asking: .seconds(60), Self.two)
    Self.occupy(clients, node, 2)
    for number in 2..<6 { clients.send(number) }
    go.signal()
    go.signal()
    #expect(clients.await(6))
    for number in 0..<6 { #expect(clients.answer(to: number)?.status == 200) }
    let requests = node.requests.withLock { $0 }
    #expect(requests[2].writes?.contains { $0["keyway-request"]?.hasSuffix(" again") == true } == false)
    for request in requests[3...4] {
      #expect(request.writes?.count == 4)
      #expect(request.writes?.allSatisfy { $0["keyway-request"]?.hasSuffix(" again") == true } == true)
    }
    // The names are the same.
    let names = requests[2...4].map { $0.writes?.map { $0["keyway-request"]?.prefix(32) } }
    #expect(names[0] == names[1] && names[1] == names[2])
    // The last goes alone.
    #expect(requests.count == 6 && requests[5].line.hasPrefix("PUT /v1/objects/Note/3 "))
  }

  @Test("With records in responses, even one write goes as a batch, and its client is answered once they are applied")
  func records() throws {
    let records = (5...6).map { JournalRecord(revision: $0, milliseconds: 1, body: [UInt8($0)]) }
    let handed = try #require(HandedRecords(records, digest: .start, pen: "a"))
    let node = try ScriptedNode { number, request in
      // The second answer is that of an older node.
      ScriptedNode.echo(request, handed: number == 1 ? nil : handed)
    }
    let (taken, wereAnswered) = (Locked<[HandedRecords]>([]), Locked<[Int]>([]))
    let sender = Locked<Clients?>(nil)
    defer { sender.withLock { $0 = nil } }
    let taking = RecordTaking {
      [("Keyway-Records", "e-4 0")]
    } take: { handed in
      let count = sender.withLock { $0 }?.results.withLock { $0.count }
      wereAnswered.withLock { $0.append(count ?? -1) }
      taken.withLock { $0.append(handed) }
    }
    let clients = try Clients(node, taking: taking, Self.two)
    sender.withLock { $0 = clients }
    for number in 0..<3 {
      clients.send(number)
      #expect(clients.await(number + 1))
    }
    #expect(taken.withLock { $0 } == [handed, handed])
    #expect(wereAnswered.withLock { $0 } == [0, 2])
    let requests = node.requests.withLock { $0 }
    #expect(requests.map(\.writes?.count) == [1, 1, 1])
    #expect(requests.allSatisfy { $0.head.contains("Keyway-Records: e-4 0") })
    for number in 0..<3 { #expect(clients.answer(to: number)?.body == Array("\(number)".utf8)) }
  }

  @Test("A batch shows the token of its node, a write that goes alone does beside its client's, and refused is unsent")
  func token() throws {
    let directory = try ScratchDirectory()
    let file = try directory.write("secret\n", to: "token")
    let refusal = Array(Problem(.nodeRefused, "no").response.body)
    let node = try ScriptedNode { number, request in
      number < 2 ? ScriptedNode.echo(request) : ScriptedNode.answer(403, refusal)
    }
    let clients = try Clients(node, token: file, Self.two)
    clients.send(0)
    #expect(clients.await(1))
    // With records to apply, even one write goes as a batch.
    let taking = RecordTaking(fields: { [] }, take: { _ in })
    let batching = try Clients(node, token: file, taking: taking, Self.two)
    batching.send(1)
    #expect(batching.await(1))
    for (number, sender) in [(2, clients), (3, batching)] {
      sender.send(number)
      #expect(sender.await(2))
      #expect(sender.fault(of: number)?.isUnsent == true)
      #expect(sender.fault(of: number)?.reason.contains("nodes.tokenFile") == true)
    }
    let heads = node.requests.withLock { $0.map(\.head) }
    #expect(heads[0].contains("Keyway-Node: Bearer secret\r\n") && !heads[0].contains("Authorization"))
    #expect(heads[1].contains("Authorization: Bearer secret\r\n") && !heads[1].contains("Keyway-Node"))
    // A token that cannot be read is not simply left out.
    let lost = try Clients(node, token: directory.file("none"), Self.two)
    lost.send(4)
    #expect(lost.await(1) && lost.fault(of: 4)?.isUnsent == true)
    #expect(node.requests.withLock { $0.count } == 4)
  }

  @Test("Stopped, it ends what is under way as a fault, lets go of what waits and takes no more")
  func stopping() throws {
    let (node, go) = try Self.held(2)
    let clients = try Clients(node, asking: .seconds(60), Self.two)
    Self.occupy(clients, node, 2)
    for number in 2..<6 { clients.send(number) }
    clients.batcher.stop()
    #expect(clients.results.withLock { Set($0.keys) } == [0, 1])
    #expect(clients.fault(of: 0)?.isUnsent == false)
    #expect(!clients.send(7))
    go.signal()
    go.signal()
  }
}

import HTTPTypes
import KeyValueModel
import TestKit
import Testing

@testable import Cluster
@testable import HTTPServer
@testable import KeywayServer

@Suite("The memory of writes that nodes pass on")
struct PassedWriteMemoryTests {
  private static func response(_ number: Revision) -> Response {
    Response(status: .ok, body: Array("\(number)".utf8))
  }

  private static let binding = BoundWrite.Binding(subject: "ann", method: "PUT", target: "/x", body: [1])

  private static func bound(_ id: WriteID) -> BoundWrite { BoundWrite(id: id, binding: binding) }

  private static func memory(_ limit: Int = 10) -> PassedWriteMemory {
    var memory = PassedWriteMemory(limit: limit)
    memory.begin(after: 0)
    return memory
  }

  @Test("A write is unknown, under way, done; what was not done may be done the next time")
  func states() {
    var memory = Self.memory()
    let id = WriteID.random()
    #expect(memory.begin(Self.bound(id), since: 3) == .first)
    #expect(memory.begin(Self.bound(id), since: 3) == .underWay)
    memory.end(id, doneAt: nil, isRefused: false)
    #expect(memory.begin(Self.bound(id), since: 3) == .first)
    memory.end(id, doneAt: 4, isRefused: false)
    #expect(memory.begin(Self.bound(id), since: 3) == .done(4))
    #expect(memory.begin(Self.bound(id), since: 3) == .done(4))
  }

  @Test("A record of a write in progress has its response; a record of another has only its revision")
  func precedents() {
    var memory = Self.memory()
    let (here, there) = (WriteID.random(), WriteID.random())
    #expect(memory.begin(Self.bound(here), since: 0) == .first)
    #expect(memory.precedent(of: here) == nil)
    memory.note(here, Self.binding, at: 1) { Self.response(1) }
    memory.note(there, Self.binding, at: 2) {
      Issue.record("nobody has asked for it")
      return nil
    }
    #expect(memory.precedent(of: here)?.body == Self.response(1).body)
    #expect(memory.precedent(of: there) == nil)
    memory.end(here, doneAt: 1, isRefused: false)
    #expect(memory.begin(Self.bound(here), since: 0) == .done(1))
    #expect(memory.begin(Self.bound(there), since: 0) == .done(2))
  }

  @Test("Once its client was told that it was refused, an earlier request for a write does not do it")
  func refusals() {
    var memory = Self.memory()
    let id = WriteID.random()
    #expect(memory.begin(Self.bound(id), since: 0) == .first)
    memory.end(id, doneAt: nil, isRefused: true)
    #expect(memory.begin(Self.bound(id), since: 0) == .refused)
  }

  @Test("The outcome of a write that was sent to another peer stays open, for the newest of such writes")
  func doubts() {
    var memory = Self.memory(2)
    let ids = (0..<3).map { _ in WriteID.random() }
    for id in ids.prefix(2) { memory.doubt(id) }
    memory.doubt(ids[0])
    #expect(ids.map { memory.isDoubtful($0) } == [true, true, false])
    memory.doubt(ids[2])
    #expect(ids.map { memory.isDoubtful($0) } == [false, true, true])
    #expect(memory.begin(Self.bound(ids[1]), since: 0) == .first)
    memory.end(ids[1], doneAt: nil, isRefused: false)
    #expect(memory.isDoubtful(ids[1]))
  }

  @Test("Before it has begun, and for what is older than it knows, nothing is taken")
  func beginning() {
    var memory = PassedWriteMemory(limit: 2)
    let id = WriteID.random()
    memory.note(id, Self.binding, at: 12) { nil }
    #expect(memory.begin(Self.bound(.random()), since: 1_000) == .forgotten)
    memory.begin(after: 10)
    #expect(memory.begin(Self.bound(id), since: 3) == .done(12))
    #expect(memory.begin(Self.bound(.random()), since: 9) == .forgotten)
    #expect(memory.begin(Self.bound(.random()), since: 10) == .first)
    for revision in Revision(13)...14 { memory.note(.random(), Self.binding, at: revision) { nil } }
    #expect(memory.begin(Self.bound(id), since: 11) == .forgotten)
    #expect(memory.begin(Self.bound(.random()), since: 12) == .first)
  }

  @Test("A name that stands for another request is told from a first one, under way, done or refused")
  func bindings() {
    let others = [
      BoundWrite.Binding(subject: "bob", method: "PUT", target: "/x", body: [1]),
      BoundWrite.Binding(subject: nil, method: "PUT", target: "/x", body: [1]),
      BoundWrite.Binding(subject: "ann", method: "DELETE", target: "/x", body: [1]),
      BoundWrite.Binding(subject: "ann", method: "PUT", target: "/y", body: [1]),
      BoundWrite.Binding(subject: "ann", method: "PUT", target: "/x", body: []),
    ]
    #expect(Set(others + [Self.binding]).count == 6)
    var memory = Self.memory()
    func expectOthers(_ id: WriteID) {
      for other in others {
        #expect(memory.begin(BoundWrite(id: id, binding: other), since: 0) == .otherRequest)
      }
    }
    let (done, refused, elsewhere) = (WriteID.random(), WriteID.random(), WriteID.random())
    for id in [done, refused] {
      #expect(memory.begin(Self.bound(id), since: 0) == .first)
      expectOthers(id)
    }
    // A record of another request under the same name has no response for this one.
    memory.note(done, others[0], at: 1) { Self.response(1) }
    #expect(memory.precedent(of: done) == nil)
    memory.end(refused, doneAt: nil, isRefused: true)
    expectOthers(refused)
    memory.note(elsewhere, Self.binding, at: 2) { nil }
    expectOthers(elsewhere)
    #expect(memory.begin(Self.bound(elsewhere), since: 0) == .done(2))
  }

  /// Compares with the list of all writes ever done: none is done again, and every outcome that can be known is known.
  @Test("Nothing that was done is taken again, however many came in between, and nothing is refused without need")
  func oracle() {
    var generator = SplitMix64(seed: seed)
    for limit in [1, 2, 7] {
      var memory = Self.memory(limit)
      var done: [(id: WriteID, revision: Revision)] = []
      var ids = (0..<4).map { _ in (WriteID.random(), Revision(0)) }
      var underWay: Set<WriteID> = []
      for _ in 0..<2_000 {
        let revision = done.last?.revision ?? 0
        let index = Int.random(in: 0..<ids.count, using: &generator)
        let (id, since) = ids[index]
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
          ids[index] = (.random(), Revision.random(in: 0...revision, using: &generator))
          if underWay.remove(id) != nil { memory.end(id, doneAt: nil, isRefused: false) }
        case 1:
          let finding = memory.begin(Self.bound(id), since: since)
          let truth = done.first { $0.id == id }?.revision
          // The newest revision that need not be remembered.
          let edge = done.count > limit ? done[done.count - limit - 1].revision : 0
          switch finding {
          case .first:
            #expect(truth == nil && underWay.insert(id).inserted, "seed \(seed)")
          case .underWay: #expect(underWay.contains(id), "seed \(seed)")
          case .done(let found): #expect(found == truth, "seed \(seed)")
          case .forgotten: #expect(since < edge, "seed \(seed): \(since) of \(revision), limit \(limit)")
          case .refused, .otherRequest: Issue.record("nothing is refused, and a name has one request")
          }
        case 2 where !done.contains { $0.id == id } && since <= revision:
          // Another node does it.
          done.append((id, revision + 1))
          memory.note(id, Self.binding, at: revision + 1) { Self.response(revision + 1) }
          #expect(!underWay.contains(id) || memory.precedent(of: id)?.body == Self.response(revision + 1).body)
        default:
          guard underWay.remove(id) != nil else { continue }
          // The write is done here, unless another node did it; then that response is given.
          let known = done.first { $0.id == id }?.revision
          if known == nil { done.append((id, revision + 1)) }
          memory.end(id, doneAt: known ?? revision + 1, isRefused: false)
        }
        #expect(memory.count <= limit)
      }
      #expect(done.count > 200)
    }
  }

  @Test("Fields about a write between nodes are read as written, and no others")
  func fields() throws {
    var write = PassedWrite(since: try #require(Cursor("k3f9-40")))
    for (isFinal, isAgain) in [(false, false), (true, false), (false, true), (true, true)] {
      (write.isFinal, write.isAgain) = (isFinal, isAgain)
      #expect(try PassedWrite(write.field) == write)
    }
    let id = String(repeating: "0f", count: 16)
    #expect(try PassedWrite("\(id) k3f9-40").field == "\(id) k3f9-40")
    let wrong = [
      "", id, "\(id) ", "\(id) 40", "\(id.dropLast()) k3f9-40", "\(id)0 k3f9-40", "+\(id.dropFirst()) k3f9-40",
      "\(id) k3f9-40 ", "\(id) k3f9-40 soon", "\(id)  k3f9-40", "x\(id.dropFirst()) k3f9-40",
    ]
    for text in wrong { #expect(throws: Problem.self, "'\(text)'") { try PassedWrite(text) } }
  }

  @Test("The attachment of a commit is read as written, with and without a client's key")
  func attachments() throws {
    let id = WriteID.random()
    let response = Response(status: .created, fields: [.location: "/x", .contentType: "a/b"], body: Array("one".utf8))
    let request = IdempotentRequest(
      key: try IdempotencyKey("key"), fingerprint: RequestFingerprint(head: "POST /\n\n", body: []))
    for request in [nil, request] {
      let bytes = PassedAttachment(Self.bound(id), request, response).bytes
      let read = try #require(PassedAttachment(bytes))
      #expect(read.id == id && read.binding == Self.binding)
      #expect(try #require(PassedAttachment.name(in: bytes)) == (id, Self.binding))
      #expect(read.stored.request?.key == request?.key)
      #expect(read.stored.response.status == .created && read.stored.response.fields == response.fields)
      #expect(read.stored.response.body == response.body)
      #expect(StoredResponse(PassedAttachment.rest(of: bytes))?.request?.key == request?.key)
      // A truncated attachment is never decoded.
      for count in 0..<33 { #expect(PassedAttachment(Array(bytes.prefix(count))) == nil) }
      let client = StoredResponse(request: request, response: response).bytes
      #expect(PassedAttachment.name(in: client) == nil && PassedAttachment.rest(of: client) == client)
    }
    let long = Response(
      status: .ok, fields: [.contentType: "a/b"], body: Array(repeating: 1, count: PassedAttachment.bodyBytes + 1))
    let kept = try #require(PassedAttachment(PassedAttachment(Self.bound(id), nil, long).bytes)).stored.response
    #expect(kept.status == .ok && kept.body.isEmpty && kept.fields[.contentType] == nil)
  }

  @Test("The attachment of an earlier version is read, and does not identify its request")
  func earlierAttachments() throws {
    let id = WriteID.random()
    var bytes: [UInt8] = [3]
    id.append(to: &bytes)
    bytes += StoredResponse(request: nil, response: Self.response(7)).bytes
    let read = try #require(PassedAttachment(bytes))
    #expect(read.id == id && read.binding == nil && read.stored.response.body == Self.response(7).body)
    #expect(read.bytes == bytes && !PassedAttachment.mayHaveKey(bytes))
    // The write is known to be done.
    var memory = Self.memory()
    memory.note(id, read.binding, at: 7) { nil }
    #expect(memory.begin(Self.bound(id), since: 0) == .done(7))
  }
}

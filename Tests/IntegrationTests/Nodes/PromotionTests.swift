import Foundation
import KeyValueModel
import TestKit
import Testing

/// The fate of followers when their leader changes.
@Suite("Promotion", .timeLimit(.minutes(60))) struct PromotionTests {
  @Test("A promoted follower takes writes under a new epoch, knows the keys of before, and others begin anew with it")
  func promotion() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let second = try NodeProcess("b", in: directory, following: leader.url)
    let third = try NodeProcess("c", in: directory, following: second.url)
    #expect(second.awaitReady() && third.awaitReady())
    let request = WireRequest("POST", "/v1/objects/Note", ["Idempotency-Key": "k"], body: #"{"text":"once"}"#)
    let first = try third.client.send(request)
    #expect(first.status == 201)
    let (epoch, revision) = (try leader.epoch, try leader.revision)
    let stream = try third.client.stream("/v1/objects/Account/1/balance")
    let id = try #require(try stream.next().id)
    try leader.kill()
    try second.stop()
    // Only a promotion makes it take writes.
    let refused = try ChildProcess.keyway("serve", "--port", "0", "--store", second.directory)
    #expect(refused.status != 0 && refused.errors.contains("follows \(leader.url)"), "\(refused.errors)")
    let promoted = try ChildProcess.keyway("store", "promote", "--store", second.directory)
    #expect(promoted.status == 0 && promoted.output.contains("up to revision \(revision)"), "\(promoted.errors)")
    let twice = try ChildProcess.keyway("store", "promote", "--store", second.directory)
    #expect(twice.status != 0 && twice.errors.contains("takes writes already"))
    #expect(try second.verified().contains("all is well up to revision \(revision)"))
    try second.start(["nodes.follow": nil])
    let next = try second.epoch
    #expect(next != epoch && !next.isEmpty)
    #expect(try second.revision == revision)
    let again = try second.client.send(request)
    #expect(again["Idempotency-Replayed"] == "true" && again["Location"] == first["Location"])
    #expect(try second.client.send("PUT", "/v1/objects/Account/1/balance", body: "9").status == 200)
    // Its own follower begins with a new copy by itself, and its streams get a reset.
    #expect(Deadline().awaits { (try? third.epoch) == next })
    #expect(third.awaitReady())
    #expect(try stream.rest().last?.name == "bye")
    let resumed = try third.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": id])
    let reset = try resumed.next()
    #expect(reset.name == "reset" && reset.json["reason"].text == "epoch")
    #expect(try third.client.send("PUT", "/v1/objects/Account/1/balance", body: "10").text == "10\n")
    #expect(try second.client.send("GET", "/v1/objects/Account/1/balance").text == "10\n")
    // The old leader has another history now, and its data is not discarded by mistake.
    let old = try ChildProcess.keyway(
      "serve", "--port", "0", "--store", leader.directory, "--follow", second.url)
    #expect(old.status != 0 && old.errors.contains("does not follow a node"), "\(old.errors)")
  }

  @Test("With --keep-epoch every cursor goes on")
  func keepingTheEpoch() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let follower = try NodeProcess("b", in: directory, following: leader.url)
    #expect(follower.awaitReady())
    let stream = try leader.client.stream("/v1/objects/Account/1/balance")
    let id = try #require(try stream.next().id)
    try leader.client.must("PUT", "/v1/objects/Account/1/balance", body: "1")
    let change = try stream.next().text
    #expect(try follower.awaitRevision(leader.revision))
    try leader.stop()
    try follower.stop()
    let promoted = try ChildProcess.keyway("store", "promote", "--keep-epoch", "--store", follower.directory)
    #expect(promoted.status == 0, "\(promoted.errors)")
    try follower.start(["nodes.follow": nil])
    let resumed = try follower.client.stream("/v1/objects/Account/1/balance", ["Last-Event-ID": id])
    #expect(try resumed.next().withoutRetry.text == change)
    #expect(try follower.client.send("PUT", "/v1/objects/Account/1/balance", body: "2").status == 200)
    #expect(try follower.status["role"].text == "single")
  }

  @Test("A schema that is not the leader's is refused, and a store of its own is not given up")
  func refusals() throws {
    let directory = try ScratchDirectory()
    let leader = try NodeProcess("a", in: directory)
    let other = try directory.write("entities: {Thing: {keys: {name: {type: string}}}}", to: "other.yaml")
    let schema = try ChildProcess.keyway(
      "serve", "--port", "0", "--store", directory.file("b"), "--schema", other, "--follow", leader.url)
    #expect(schema.status != 0 && schema.errors.contains("its schema differs"), "\(schema.errors)")
    for (url, reason) in [
      ("ftp://a.example.org", "is not the address of a node"), ("a:1", "is not the address of a node"),
      ("http://a:0", "without a path"), ("https://a/b", "without a path"),
    ] {
      let result = try ChildProcess.keyway("serve", "--port", "0", "--store", directory.file("c"), "--follow", url)
      #expect(result.status != 0 && result.errors.contains(reason), "\(url): \(result.errors)")
    }
  }

  @Test("With keys, a follower shows its token, writes are judged by their own, and revocations count on every node")
  func access() throws {
    let directory = try ScratchDirectory()
    let keys = directory.file("keys.json")
    func token(_ subject: String, _ claims: [String] = []) throws -> String {
      let named = claims.flatMap { ["--claim", $0] }
      let result = try ChildProcess.run(
        PackageFolder.keyway, ["token", "--keys", keys, "--sub", subject, "--expires", "1h"] + named)
      guard result.status == 0 else { throw LoopbackError(result.errors) }
      return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
    let made = try ChildProcess.keyway("token", "--new-key", "--keys", keys)
    try #require(made.status == 0, "\(made.errors)")
    let admin = try token("node", [#"roles=["keyway-admin"]"#])
    let schema = try directory.write(
      "access: {read: 'identity != null', create: 'identity != null', update: identity.sub == 'alice'}\n"
        + "entities: {Thing: {keys: {name: {type: string}}}}\n", to: "schema.yaml")
    let file = try directory.write(admin + "\n", to: "token")
    let settings = ["access.keys": keys, "schema": schema, "nodes.tokenFile": file]
    let leader = try NodeProcess("a", in: directory, settings: settings)
    let follower = try NodeProcess("b", in: directory, following: leader.url, settings: settings)
    #expect(follower.awaitReady())
    let (alice, bob) = (try token("alice"), try token("bob"))
    func write(_ token: String?) throws -> WireResponse {
      let headers = token.map { ["Authorization": "Bearer \($0)"] } ?? [:]
      return try follower.client.send("PUT", "/v1/objects/Thing/1", headers, body: #"{"name":"x"}"#)
    }
    #expect(try write(nil).status == 401)
    #expect(try write(alice).status == 201)
    #expect(try write(bob).status == 403)
    #expect(try write(alice).status == 200)
    #expect(try follower.client.send("GET", "/v1/nodes", ["Authorization": "Bearer \(alice)"]).status == 403)
    let revoked = try follower.client.send(
      "PUT", "/v1/access/revocations/alice", ["Authorization": "Bearer \(admin)", "Content-Type": "application/json"],
      body: #"{"before":"2100-01-01T00:00:00Z"}"#)
    #expect(revoked.status == 201, "\(revoked.text)")
    // A revocation applies at once on the node that received it, and on the leader.
    for node in [follower, leader] {
      #expect(try node.client.send("GET", "/v1/objects/Thing/1", ["Authorization": "Bearer \(alice)"]).status == 401)
    }
  }
}

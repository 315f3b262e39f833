import Foundation
import KeyValueModel
import Support
import TestKit
import Testing

@Suite("Many at a time")
struct ConcurrencyTests {
  @Test("A client that subscribes in the midst of writing gets the state and everything after it: no gap, no echo")
  func noGap() throws {
    let server = try TestServer()
    let port = server.client.port
    let last = 600
    try server.set("Account/1/visits", "0")
    let failures = TestThreads.run(4) { index in
      let client = WireClient(port: port)
      if index == 0 {
        for number in 1...last { try client.must("PUT", "/v1/objects/Account/1/visits", body: "\(number)") }
        return
      }
      for _ in 0..<25 {
        let stream = try client.stream("/v1/objects/Account/1/visits")
        guard var number = try stream.next().changes.first?["new"].whole else { throw LoopbackError(.malformed) }
        let end = min(last, number + 5)
        while number < end {
          let next = try stream.next().changes.first?["new"].whole
          guard next == number + 1 else {
            throw LoopbackError(.malformed, "\(number), then \(String(describing: next))")
          }
          number += 1
        }
      }
    }
    #expect(failures.isEmpty)
    withExtendedLifetime(server) {}
  }

  @Test("Of many writers, each write takes a revision of its own, and streams hear of all in the order of revisions")
  func writers() throws {
    let server = try TestServer()
    let port = server.client.port
    let stream = try server.subscribed("Account/1/visits,balance,owner.lastName")
    let before = try server.revision
    let cursors = Locked<[String]>([])
    let failures = TestThreads.run(6) { index in
      for number in 0..<50 {
        let answer = try WireClient(port: port)
          .must("PUT", "/v1/objects/Account/1/visits", ["Keyway-Writer": "w\(index)"], body: "\(number)")
        cursors.withLock { $0.append(answer["Keyway-Cursor"] ?? "") }
      }
    }
    #expect(failures.isEmpty)
    #expect(Set(cursors.withLock { $0 }).count == 300)
    #expect(try server.revision == before + 300)
    let events = try (0..<300).map { _ in try stream.next() }
    #expect(events.map { $0.json["revision"].whole } == (1...300).map { before + $0 })
    for index in 0..<6 {
      let own = events.filter { $0.json["writer"].text == "w\(index)" }.map { $0.changes[0]["new"].whole }
      #expect(own == Array(0..<50))
    }
  }

  @Test("Of two who change what they read, with If-Match, no change is lost")
  func optimisticLocking() throws {
    let server = try TestServer()
    let port = server.client.port
    try server.set("Account/1/visits", "0")
    let failures = TestThreads.run(4) { _ in
      let client = WireClient(port: port)
      var left = 25
      while left > 0 {
        let read = try client.must("GET", "/v1/objects/Account/1/visits")
        let number = (read.json.whole ?? 0) + 1
        let write = try client.send(
          "PUT", "/v1/objects/Account/1/visits", ["If-Match": read["ETag"] ?? ""], body: "\(number)")
        guard [200, 412].contains(write.status) else { throw LoopbackError(.unexpectedStatus(write.status)) }
        if write.status == 200 { left -= 1 }
      }
    }
    #expect(failures.isEmpty)
    #expect(try server.client.json("/v1/objects/Account/1/visits").whole == 100)
  }

  @Test("A transaction is seen whole or not at all, by readers and by streams")
  func wholeTransactions() throws {
    let server = try TestServer()
    let port = server.client.port
    try server.commit(
      #"{"op":"set","object":"Account/1","keyPath":"visits","value":0}"#,
      #"{"op":"set","object":"Account/2","keyPath":"visits","value":0}"#)
    let failures = TestThreads.run(3) { index in
      let client = WireClient(port: port)
      for number in 1...100 {
        if index == 0 {
          let sets = [1, 2].map { #"{"op":"set","object":"Account/\#($0)","keyPath":"visits","value":\#(number)}"# }
          try client.must("POST", "/v1/transactions", body: "{\"operations\":[\(sets.joined(separator: ","))]}")
        } else {
          let objects = try client.json("/v1/objects/Account?keys=visits")["objects"].items
          guard Set(objects.map { $0["visits"].whole }).count == 1 else {
            throw LoopbackError(.malformed, "half a commit")
          }
        }
      }
    }
    #expect(failures.isEmpty)
    withExtendedLifetime(server) {}
  }
}

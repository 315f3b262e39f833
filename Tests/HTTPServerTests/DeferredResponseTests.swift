import HTTPTypes
import Support
import TestKit
import Testing

@testable import HTTPServer

@Suite(.serialized, .timeLimit(.minutes(60))) struct DeferredResponseTests {
  @Test func anAnswerFromAnotherThreadIsSent() throws {
    let threads = Locked([SystemThread]())
    defer { for thread in threads.withLock({ $0 }) { thread.join() } }
    let test = try TestServer { request, _ in
      let target = request.target
      return .deferred { completion in
        let thread = SystemThread { completion.respond(Response(status: .accepted, body: Array(target.utf8))) }
        if let thread { threads.withLock { $0.append(thread) } }
      }
    }
    let client = try test.client()
    for number in 0..<200 {
      client.get("/\(number)")
      let response = client.readResponse()
      #expect(response.head.hasPrefix("HTTP/1.1 202 ") && response.body == "/\(number)")
    }
  }

  @Test func whatComesWhileAnAnswerIsAwaitedIsReadBehindIt() throws {
    let completions = Locked([Completion]())
    let test = try TestServer { request, _ in
      guard request.target == "/later" else {
        return .response(Response(status: .ok, body: Array(request.target.utf8)))
      }
      return .deferred { completion in completions.withLock { $0.append(completion) } }
    }
    let client = try test.client()
    for round in 0..<50 {
      client.get("/later")
      #expect(Deadline().awaits { completions.withLock { !$0.isEmpty } })
      client.get("/next\(round)")
      completions.withLock { $0.removeLast() }.respond(Response(status: .ok, body: Array("answer".utf8)))
      #expect(client.readResponse().body == "answer")
      #expect(client.readResponse().body == "/next\(round)")
    }
  }

  @Test func whoSendsNoMoreWhileTheAnswerIsAwaitedGetsIt() throws {
    let completions = Locked([Completion]())
    let test = try TestServer { _, _ in
      .deferred { completion in completions.withLock { $0.append(completion) } }
    }
    let client = try test.client()
    client.get("/later")
    #expect(Deadline().awaits { completions.withLock { !$0.isEmpty } })
    client.finish()
    completions.withLock { $0.removeLast() }.respond(Response(status: .ok, body: Array("answer".utf8)))
    #expect(client.readResponse().body == "answer")
    #expect(client.read(until: "never").isEmpty)
  }

  @Test func theFirstAnswerCounts() throws {
    let test = try TestServer { _, _ in
      .deferred { completion in
        completion.respond(Response(status: .ok))
        completion.respond(Response(status: .notFound))
      }
    }
    let client = try test.client()
    client.get("/")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200 "))
    client.get("/")
    #expect(client.readResponse().head.hasPrefix("HTTP/1.1 200 "))
  }

  @Test func aForgottenCompletionAnswersWithAnError() throws {
    let test = try TestServer { _, _ in .deferred { _ in } }
    let client = try test.client()
    client.get("/")
    let response = client.readResponse()
    #expect(response.head.hasPrefix("HTTP/1.1 500 ") && response.body == "unanswered")
  }

  @Test func anAnswerIsPreparedOnceAlsoWhenItWasForgotten() throws {
    let seen = Locked([Int]())
    let test = try TestServer { request, _ in
      let isForgotten = request.target == "/forgotten"
      return .deferred { completion in
        let inner = completion.preparing { response in
          seen.withLock { $0.append(response.status.code) }
          return Response(status: .accepted, body: response.body + Array("!".utf8))
        }
        if isForgotten { return }
        inner.respond(Response(status: .ok, body: Array("first".utf8)))
        inner.respond(Response(status: .notFound))
      }
    }
    let client = try test.client()
    client.get("/")
    #expect(client.readResponse().body == "first!")
    client.get("/forgotten")
    let forgotten = client.readResponse()
    #expect(forgotten.head.hasPrefix("HTTP/1.1 202 ") && forgotten.body == "unanswered!")
    #expect(seen.withLock { $0 } == [200, 500])
  }

  @Test("A request that has kept its body is handled once more in place of a response that says so; others are not")
  func retry() throws {
    let seen = Locked<[String]>([])
    let test = try TestServer { request, _ in
      if request.target == "/kept" { request.keepBody() }
      let (body, outcome, isAgain) = (request.body(), request.outcome as? String, request.isHandledAgain)
      return .deferred { completion in
        let inner = completion.preparing { response in
          seen.withLock { $0.append("\(response.status.code) \(outcome ?? "-")") }
          return response
        }
        _ = SystemThread {
          var response = Response(status: .accepted, body: Array("\(outcome ?? "-") \(isAgain) ".utf8) + body)
          if outcome != "twice" {
            response.status = .serviceUnavailable
            response.retry = Response.Retry(with: outcome == nil ? "once" : "twice")
          }
          inner.respond(response)
        }?.detach()
      }
    }
    let client = try test.client()
    for target in ["/kept", "/let-go", "/kept"] {
      client.send("PUT \(target) HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody")
      let response = client.readResponse()
      if target == "/kept" {
        #expect(response.head.hasPrefix("HTTP/1.1 202 ") && response.body == "twice true body")
        #expect(seen.withLock { $0 } == ["503 -", "503 once", "202 twice"])
      } else {
        #expect(response.head.hasPrefix("HTTP/1.1 503 ") && response.body == "- false body")
        #expect(seen.withLock { $0 } == ["503 -"])
      }
      seen.withLock { $0 = [] }
    }
  }

  @Test func stoppingWaitsForAnAnswerUnderWay() throws {
    let held = Locked<Completion?>(nil)
    let test = try TestServer { _, _ in
      .deferred { completion in held.withLock { $0 = completion } }
    }
    let client = try test.client()
    client.get("/")
    #expect(Deadline().awaits { held.withLock { $0 != nil } })
    let server = test.server
    let stopping = SystemThread { server.stop(until: .now + Deadline.patience) }
    held.withLock { $0 }?.respond(Response(status: .ok, body: Array("done".utf8)))
    #expect(client.readToEnd().hasSuffix("done"))
    stopping?.join()
    #expect(throws: LoopbackError.self) { try TestClient(port: server.port) }
  }
}

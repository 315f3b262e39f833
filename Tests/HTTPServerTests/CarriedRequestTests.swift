import HTTPTypes
import Support
import Testing

@testable import HTTPServer

/// Requests that come in the body of another: one target a line, each a request of its own.
@Suite(.timeLimit(.minutes(60))) struct CarriedRequestTests {
  /// A server that hands the lines of a body to its own handler, and answers with the response to each, a line each.
  private static func server(
    ledger: MemoryLedger = MemoryLedger(limit: .max, clientLimit: .max),
    _ answer: @escaping @Sendable (borrowing Request, StreamHub) throws -> HandlerResponse
  ) throws -> TestServer {
    try TestServer(ledger: ledger) { request, hub in
      guard let carrier = request.carrier, request.target == "/batch" else { return try answer(request, hub) }
      let lines = String(decoding: request.body(), as: UTF8.self).split(separator: "\n").map(String.init)
      return .deferred { completion in
        let answers = Locked((texts: [Int: String](), left: lines.count))
        for (number, line) in lines.enumerated() {
          guard
            let message = CarriedMessage(
              method: "PUT", target: line, fields: [("X-Word", "one"), ("x-word", "two")], body: Array(line.utf8))
          else { continue }
          carrier.handle(message, number: number, isAbandoned: { completion.isAbandoned }) { response in
            let isLast = answers.withLock { answers in
              answers.texts[number] = "\(response.status.code) \(String(decoding: response.body, as: UTF8.self))"
              answers.left -= 1
              return answers.left == 0
            }
            guard isLast else { return }
            let text = answers.withLock { answers in lines.indices.compactMap { answers.texts[$0] } }
            completion.respond(Response(status: .ok, body: Array(text.joined(separator: "\n").utf8)))
          }
        }
      }
    }
  }

  private static func answers(_ server: TestServer, _ lines: [String]) throws -> [String] {
    let body = lines.joined(separator: "\n")
    let client = try server.client()
    client.send(
      "POST /batch HTTP/1.1\r\nHost: x\r\nX-Request-Id: id\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    return client.readResponse().body.split(separator: "\n").map(String.init)
  }

  @Test("Each is answered: at once, later, after it was handled once more, and never with a stream")
  func ways() throws {
    let server = try Self.server { request, hub in
      let text = "\(request.id.text) \(request.header(Self.word) ?? "") \(request.body().count)"
      switch request.target {
      case "/now": return .response(Response(status: .accepted, body: Array(text.utf8)))
      case "/later":
        return .deferred { completion in
          _ = SystemThread { completion.respond(Response(status: .created, body: Array(text.utf8))) }?.detach()
        }
      case "/again":
        guard request.isHandledAgain else {
          request.keepBody()
          return .deferred { $0.handleAgain(with: "found") }
        }
        return .response(Response(status: .ok, body: Array("\(request.outcome as? String ?? "") \(text)".utf8)))
      case "/retried":
        request.keepBody()
        let found = request.outcome as? String
        return .deferred { completion in
          var response = Response(status: .ok, body: Array("\(found ?? "") \(text)".utf8))
          if found == nil { response.retry = Response.Retry(with: "kept") }
          completion.respond(response)
        }
      case "/unanswered": return .deferred { _ in }
      default:
        return .stream(try hub.open(prelude: EventBytes([]), channel: ChannelID(1), overflow: .coalesce), fields: [:])
      }
    }
    let lines = ["/now", "/later", "/again", "/retried", "/unanswered", "/stream"]
    let answers = try Self.answers(server, lines)
    #expect(
      answers.prefix(4) == [
        "202 id.0 one, two 4", "201 id.1 one, two 6", "200 found id.2 one, two 6", "200 kept id.3 one, two 8",
      ])
    #expect(answers.dropFirst(4).allSatisfy { $0.hasPrefix("500 ") } && answers.count == 6)
  }

  private static let word = HTTPField.Name("X-Word") ?? .contentType

  @Test("One that is carried carries none, and its body's and answer's memory is its own client's")
  func memory() throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: 100_000)
    let other = ClientAddress(digest: 1, 2)
    let server = try Self.server(ledger: ledger) { request, _ in
      guard request.isCarried, request.carrier == nil else { return .response(Response(status: .badRequest)) }
      request.note(client: other)
      do {
        try request.hold(request.target == "/much" ? 200_000 : 50_000)
      } catch {
        return .response(Response(status: .serviceUnavailable))
      }
      let held = ledger.bytes(of: other)
      return .response(Response(status: .ok, body: Array("\(held)".utf8)))
    }
    #expect(try Self.answers(server, ["/little", "/much", "/little"]) == ["200 50000", "503 ", "200 50000"])
    #expect(ledger.bytes(of: other) == 0)
  }

  @Test("A successful answer for which its client may hold no more memory loses its content")
  func largeAnswers() throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: 10_000)
    let server = try Self.server(ledger: ledger) { request, _ in
      .response(
        Response(
          status: request.target == "/bad" ? .conflict : .created, body: [UInt8](repeating: 0x20, count: 20_000)))
    }
    let answers = try Self.answers(server, ["/good", "/bad"])
    #expect(answers.first == "201 " && answers.last?.hasPrefix("503 ") == true)
  }
}

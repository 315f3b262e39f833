import KeywayServer
import Store
import TestKit
import Testing

@Suite("The live queries that a client may have")
struct QueryShareTests {
  /// A client that opens one live query after the other.
  private final class Opener {
    let client: WireClient
    private let name: String
    private var streams: [WireStream] = []

    init(_ server: TestServer, _ address: String) {
      client = server.client(from: address)
      name = address
    }

    var count: Int { streams.count }

    func target(_ number: Int) -> String { Staff.target("Employee", ["filter": "name != '\(name) \(number)'"]) }

    /// Opens live queries until one is refused. Returns that response.
    func fill() throws -> WireResponse {
      for _ in 0..<100 {
        do throws(LoopbackError) {
          streams.append(try client.stream(target(count)))
          _ = try streams.last?.next()
        } catch {
          return try client.send("GET", target(count), ["Accept": "text/event-stream"])
        }
      }
      throw LoopbackError(.unexpectedStatus(200), "no query was refused")
    }

    /// Opens another stream of a query.
    func join(_ target: String) throws { streams.append(try client.stream(target)) }

    func close() {
      for stream in streams { stream.socket.close() }
      streams = []
    }
  }

  @Test("Clients that take all the live queries they get leave some to each of those who come later")
  func queries() throws {
    let server = try Staff.server {
      $0.store.queries = 32
      $0.store.queriesPerClient = 20
    }
    let greedy = Opener(server, "127.0.0.2")
    let refused = try greedy.fill()
    #expect(greedy.count == 20 && refused.status == 429 && refused.problem == "too-many-queries")
    #expect(refused["Retry-After"] != nil)
    let second = Opener(server, "127.0.0.3")
    let full = try second.fill()
    #expect(second.count == 6 && full.status == 503 && full.problem == "too-many-queries", "\(full.text)")
    let others = (4..<9).map { Opener(server, "127.0.0.\($0)") }
    for other in others {
      _ = try other.fill()
      #expect(other.count >= 1)
    }
    #expect(server.openQueries <= 32)
    // A query that is already open costs the server nothing, even if another client has it.
    try second.join(greedy.target(0))
    greedy.close()
    #expect(Deadline().awaits { server.openQueries <= 13 })
    let before = second.count
    _ = try second.fill()
    #expect(second.count > before)
    for opener in [second] + others { opener.close() }
    #expect(Deadline().awaits { server.openQueries == 0 })
  }

  @Test("The queries of cells count together, and those that were refused change nothing")
  func cells() throws {
    let server = try Staff.server {
      $0.store.queries = 16
      $0.store.queriesPerClient = 4
    }
    let screen = try CellScreen(server, cells: #"{"a":{"entity":"Employee"},"b":{"entity":"Department"}}"#)
    let cells = (1...3).map { #""\#($0)":{"entity":"Employee","limit":\#($0)}"# }.joined(separator: ",")
    let refused = try server.client.send("PATCH", "\(screen.path)/cells", body: #"{"cells":{\#(cells)}}"#)
    #expect(refused.status == 429 && refused.problem == "too-many-queries", "\(refused.text)")
    #expect(server.openQueries == 2)
    let body = #"{"cells":{"x":{"entity":"Manager"},\#(cells)}}"#
    let stream = try server.client.send(
      "POST", "/v1/streams", ["Accept": "text/event-stream"], body: body)
    #expect(stream.status == 429 && stream.problem == "too-many-queries", "\(stream.text)")
    #expect(server.openQueries == 2)
    try screen.bind("b", #"{"entity":"Employee","limit":1}"#)
    #expect(server.openQueries == 2)
  }

  @Test("The rows of a client's queries count for it, as they are now, and those of others leave it a part")
  func rows() throws {
    let server = try Staff.server {
      $0.store.queryRows = 64
      $0.store.queryRowsPerClient = 24
    }
    let greedy = Opener(server, "127.0.0.2")
    // Each query has the five employees.
    let refused = try greedy.fill()
    #expect(greedy.count == 4 && refused.status == 429 && refused.text.contains("queries.rowsPerClient"))
    let others = (3..<10).map { Opener(server, "127.0.0.\($0)") }
    for other in others { _ = try other.fill() }
    #expect(others[0].count == 3, "\(others.map(\.count))")
    #expect(others.dropFirst().allSatisfy { $0.count <= 3 })
    for employee in 1...4 { try server.client.must("DELETE", "/v1/objects/Employee/\(employee)") }
    let before = greedy.count
    _ = try greedy.fill()
    #expect(greedy.count > before)
  }

  @Test("Cells of one request cannot have more rows together than there may be")
  func rowsOfCells() throws {
    let server = try Staff.server {
      $0.store.queryRows = 40
      $0.store.queryRowsPerClient = 35
    }
    let cells = (1...8).map { #""\#($0)":{"entity":"Employee","limit":\#($0)}"# }.joined(separator: ",")
    let refused = try server.client.send(
      "POST", "/v1/streams", ["Accept": "text/event-stream"], body: #"{"cells":{\#(cells)}}"#)
    #expect(refused.problem == "too-many-queries", "\(refused.text)")
    #expect(server.openQueries == 0)
  }
}

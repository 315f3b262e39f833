import Foundation
import Glibc
import KeyValueModel
import KeywayServer
import Logging
import Store
import Support
import TestKit
import Testing

@testable import HTTPServer

/// A server in this process on a free port, with a small schema of its own, and a client for it.
final class TestServer {
  let server: KeywayServer

  /// A client of the server. The client and its streams retain the server.
  var client: WireClient { WireClient(port: server.port, keepingAlive: self) }

  /// Returns a client at another address of the loopback interface: to the server, another client.
  func client(from source: String) -> WireClient { WireClient(port: server.port, from: source, keepingAlive: self) }

  /// Returns a client that connects to another address of the loopback interface.
  func client(to destination: String) -> WireClient {
    WireClient(port: server.port, to: destination, keepingAlive: self)
  }

  init(
    schema: String = Fixture.schema, objects: [(String, String)] = Fixture.objects,
    journal: (any TransactionJournal)? = nil, isMigrating: Bool = false, log: LogOutput? = nil,
    _ configure: (inout KeywayServer.Configuration) -> Void = { _ in }, now: (@Sendable () -> UInt64)? = nil
  ) throws {
    var configuration = KeywayServer.Configuration()
    configuration.port = 0
    configure(&configuration)
    var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    logger.logLevel = .critical
    let schemaText = isMigrating ? schema : nil
    let schema = try Schema(yaml: schema)
    server =
      if let now {
        try KeywayServer(
          schema: schema, schemaText: schemaText, configuration: configuration, logger: logger, journal: journal,
          log: log, now: now)
      } else {
        try KeywayServer(
          schema: schema, schemaText: schemaText, configuration: configuration, logger: logger, journal: journal,
          log: log)
      }
    _ = try server.recover { _ in }
    for (reference, body) in objects { try client.must("PUT", "/v1/objects/\(reference)", body: body) }
  }

  deinit { server.drain() }

  var revision: Int { get throws { try client.json("/v1/status")["revision"].whole ?? -1 } }

  var epoch: String { server.store.epoch }

  /// Sets a key path to a JSON text.
  func set(_ path: String, _ json: String, _ headers: [String: String] = [:]) throws {
    try client.must("PUT", "/v1/objects/\(path)", headers, body: json)
  }

  /// Commits operations, given as the JSON texts of their members.
  @discardableResult
  func commit(_ operations: String...) throws -> WireResponse {
    try client.must(
      "POST", "/v1/transactions", body: "{\"operations\":[\(operations.joined(separator: ","))]}")
  }

  /// Opens a stream of an object or key paths and reads its first event.
  func subscribed(_ target: String) throws -> WireStream {
    let stream = try client.stream("/v1/objects/\(target)")
    _ = try stream.next()
    return stream
  }
}

/// The data of these tests: small, and independent of the example's files.
enum Fixture {
  static let schema = """
    entities:
      Person:
        keys:
          firstName: { type: string, optional: false, maxLength: 8 }
          lastName: { type: string, optional: false, minLength: 1 }
          email: { type: string, pattern: "^[^@ ]+@[^@ ]+$" }
          born: { type: date }
          spouse: { toOne: Person, inverse: spouse }
        display: [firstName, lastName]
      Employee:
        extends: Person
        keys:
          salary: { type: number, minimum: 0, maximum: 1000, default: 10 }
          grade: { type: string, enum: [a, b] }
          department: { toOne: Department }
          headName: { type: string, computed: department.head.lastName }
        display: [lastName, headName]
      Department:
        keys:
          name: { type: string }
          head: { toOne: Employee }
      Account:
        keys:
          balance: { type: number, notifies: changed }
          opening: { type: number, notifies: manual, default: 0 }
          visits: { type: integer }
          isOpen: { type: boolean }
          owner: { toOne: Person, delete: deny }
          ownerName: { type: string, computed: owner.lastName }
        display: [balance, ownerName]
      Badge:
        keys:
          bearer: { toOne: Person, optional: false }
      Note:
        keys:
          text: { type: string }
          tags: { type: json }
          parent: { toOne: Note, delete: cascade }
    """

  static let objects = [
    ("Person/1", #"{"firstName":"Ada","lastName":"Lovelace"}"#),
    ("Person/2", #"{"firstName":"Mary","lastName":"Somerville"}"#),
    ("Department/1", #"{"name":"Engines"}"#),
    ("Employee/1", #"{"firstName":"Joseph","lastName":"Clement","department":"Department/1"}"#),
    ("Account/1", #"{"balance":100,"owner":"Person/1"}"#),
    ("Account/2", #"{"balance":40}"#),
    ("Note/1", #"{"text":"one","tags":{"a":1,"b":[1,2]}}"#),
  ]
}

/// Concurrent actions of several clients.
enum TestThreads {
  /// Runs `body` on so many threads, each with its number. Returns their errors.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) -> [String] {
    let failures = Locked<[String]>([])
    let group = DispatchGroup()
    for index in 0..<count {
      group.enter()
      Thread.detachNewThread {
        do {
          try body(index)
        } catch {
          failures.withLock { $0.append("\(index): \(error)") }
        }
        group.leave()
      }
    }
    #expect(group.wait(timeout: .now() + Deadline.patienceSeconds) == .success)
    return failures.withLock { $0 }
  }
}

extension WireResponse {
  /// The body of a JSON response without the newline at its end; nil if it does not end with one.
  var jsonText: String? { text.hasSuffix("\n") ? String(text.dropLast()) : nil }
}

extension ClientAddress {
  /// Creates an address that differs for each number.
  init(number: UInt8) {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(127) | UInt32(number) << 24
    self = withUnsafeBytes(of: &address) { ClientAddress($0.bindMemory(to: sockaddr.self).baseAddress) }
  }
}

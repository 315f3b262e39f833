import Foundation
import Glibc
import KeyValueModel
import TestKit
import Testing

/// The running program with little memory, and clients that fill it with objects.
@Suite("A store that fills the memory")
struct FullStoreTests {
  private static let schema = "entities: {Item: {keys: {text: {type: string}, data: {type: json}}}}"
  private static let memoryBytes = 160 << 20

  private let folder: ScratchDirectory

  init() throws {
    folder = try ScratchDirectory()
    _ = try folder.write(Self.schema, to: "schema.yaml")
  }

  private func server(
    memoryBytes: Int = Self.memoryBytes, _ settings: [String: String] = [:], addressSpaceKiB: Int? = nil
  ) throws -> ServerProcess {
    let settings = ["memory.bytes": "\(memoryBytes)", "seed": "none"].merging(settings) { $1 }
    return try ServerProcess(
      "--schema", folder.file("schema.yaml"), "--store", folder.file("store"), settings: settings,
      addressSpaceKiB: addressSpaceKiB)
  }

  private static func residentBytes(_ server: ServerProcess) throws -> Int {
    let text = try String(contentsOfFile: "/proc/\(server.child.pid)/statm", encoding: .utf8)
    let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(pages) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }

  /// Returns a body of more than a hundred kilobytes of JSON; some take many times as much memory.
  private static func body(_ number: Int) -> String {
    switch number % 3 {
    case 0: "{\"text\":\"\(String(repeating: "x", count: 900_000))\"}"
    case 1: "{\"data\":[\(Array(repeating: "[]", count: 200_000).joined(separator: ","))]}"
    default: "{\"data\":[\(Array(repeating: "{}", count: 60_000).joined(separator: ","))]}"
    }
  }

  /// A megabyte of JSON, which takes eight times as much memory.
  private static let nested = "{\"data\":[\(Array(repeating: "[]", count: 333_000).joined(separator: ","))]}"

  /// Puts objects until one is refused. Returns the number of accepted ones.
  private static func fill(
    _ server: ServerProcess, memoryBytes: Int = Self.memoryBytes, _ body: (Int) -> String = Self.body
  ) throws -> Int {
    for number in 0..<1_000 {
      let response = try server.client.send("PUT", "/v1/objects/Item/\(number)", body: body(number))
      #expect(try residentBytes(server) < memoryBytes / 5 * 6)
      guard response.status != 201 else { continue }
      #expect(response.status == 503)
      #expect(response.json["type"].text == "/v1/problems/overloaded")
      #expect(response.json["detail"].text?.contains("objects.bytes") == true)
      #expect(response["Retry-After"] != nil)
      return number
    }
    return 1_000
  }

  @Test("Writes that add are refused near memory.bytes, all others are taken, and it starts again with what it has")
  func full() throws {
    var server = try server()
    try server.client.must("PUT", "/v1/objects/Item/note", body: #"{"text":"a"}"#)
    let count = try Self.fill(server)
    #expect((10..<300).contains(count))
    let memory = try server.status["memory"]
    let (objects, limit) = (try #require(memory["objects"].whole), try #require(memory["objectsLimit"].whole))
    #expect(limit == Self.memoryBytes / 8 * 5)
    #expect(objects <= limit && objects > limit / 4 * 3)
    try server.set("Item/note/text", #""b""#)
    try server.client.must("DELETE", "/v1/objects/Item/1")
    try server.client.must("PUT", "/v1/objects/Item/1", body: Self.body(1))
    #expect(try server.client.send("PUT", "/v1/objects/Item/more", body: Self.body(1)).status == 503)
    let metrics = try server.client.send("GET", "/metrics").text
    #expect(metrics.contains("keyway_objects_memory_limit_bytes \(limit)\n"))
    #expect(metrics.contains("keyway_objects_refusals_total{reason=\"total\"} 2\n"))
    server.child.send(SIGKILL)
    _ = try server.child.exitStatus()

    server = try self.server()
    // An array has the capacity that the allocator gave it while it grew: one of the long ones may have doubled once
    // more, or once less.
    let again = try #require(try server.status["memory"]["objects"].whole)
    #expect(abs(again - objects) < objects / 25)
    #expect(try Self.residentBytes(server) < Self.memoryBytes / 5 * 6)
    #expect(try server.client.send("GET", "/v1/objects/Item/note/text").text == "\"b\"\n")
    #expect(try server.stop() == 0)

    // With less memory than its objects need it still starts, and objects can be deleted.
    server = try self.server(memoryBytes: Self.memoryBytes / 4)
    #expect(try server.client.send("PUT", "/v1/objects/Item/small", body: "{}").status == 503)
    try server.set("Item/note/text", #""c""#)
    for number in 0..<count { try server.client.must("DELETE", "/v1/objects/Item/\(number)") }
    try server.client.must("PUT", "/v1/objects/Item/small", body: "{}")
    #expect(try server.stop() == 0)
  }

  @Test("In 3 GB of address space, writes of 1 MB are refused near memory.bytes, and it starts again as it was")
  func addressSpace() throws {
    let (memoryBytes, addressSpaceKiB) = (256 << 20, 3 << 20)
    var server = try server(memoryBytes: memoryBytes, addressSpaceKiB: addressSpaceKiB)
    let count = try Self.fill(server, memoryBytes: memoryBytes) { _ in Self.nested }
    #expect((10..<40).contains(count))
    // The room of three objects, since an array may have more capacity than before.
    for number in [0, 2] { try server.set("Item/\(number)", #"{"data":[[]]}"#) }
    try server.client.must("DELETE", "/v1/objects/Item/1")
    for number in 0..<2 { try server.client.must("PUT", "/v1/objects/Item/\(number)", body: Self.nested) }
    server.child.send(SIGKILL)
    _ = try server.child.exitStatus(within: 20)
    server = try self.server(memoryBytes: memoryBytes, addressSpaceKiB: addressSpaceKiB)
    #expect(try server.status["objects"].whole == count)
    // An array may have less capacity than before, so that one or two more fit, besides one instead of the third.
    let problems = try (0..<4).map {
      try server.client.send("PUT", "/v1/objects/Item/more-\($0)", body: Self.nested).problem
    }
    #expect(problems.last == "overloaded")
    try server.set("Item/3", #"{"data":[[]]}"#)
    try server.client.must("DELETE", "/v1/objects/Item/4")
    #expect(try server.stop() == 0)
  }

  @Test("A client that has added its share is refused what adds, and another client is not")
  func share() throws {
    let server = try server(["objects.bytesPerClient": "\(3 << 20)"])
    let body = Self.body(0)
    let (first, second) = (server.client, WireClient(port: server.port, from: "127.0.0.2", keepingAlive: server))
    let statuses = try (0..<5).map { try first.send("PUT", "/v1/objects/Item/\($0)", body: body).status }
    #expect(statuses == [201, 201, 201, 503, 503])
    #expect(try second.send("PUT", "/v1/objects/Item/a", body: body).status == 201)
    try first.must("DELETE", "/v1/objects/Item/1")
    #expect(try first.send("PUT", "/v1/objects/Item/3", body: body).status == 201)
  }
}

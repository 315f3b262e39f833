import Foundation
import TestKit

/// A server that was started for a benchmark. It ends when the last reference to it goes.
struct RunningPeer {
  /// The time limit for its start, in seconds.
  private static let readySeconds = 30.0

  /// The description of the server and of its requests.
  let peer: WritePeer
  /// The processes of the server.
  private let processes: [ChildProcess]

  /// The process ids of the server.
  var pids: [Int] { processes.map { Int($0.pid) } }

  /// Returns a lane of connections that write.
  func writing(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.writes,
      answerBytes: peer.answerBytes)
  }

  /// Returns a lane of connections that read.
  func reading(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.reads)
  }

  /// Starts a server, with its data in `directory`, and waits until it serves; nil if it is not installed.
  static func start(
    _ kind: WritePeer.Kind, _ options: BenchDurableCommand, in directory: ScratchDirectory
  ) throws -> RunningPeer? {
    let port = try LoopbackPort.free()
    var processes: [ChildProcess] = []
    func start(_ name: String, _ program: String, _ arguments: [String]) throws {
      processes.append(
        try ChildProcess(program, arguments, output: .log(directory.file("\(name).log")), name: name))
    }
    switch kind {
    case .keyway:
      try start("keyway", KeywayServer.keyway, keyway(options, port: port, in: directory))
    case .etcd:
      guard let program = ChildProcess.find("etcd") else { return nil }
      try start("etcd", program, try etcd(port: port, in: directory))
    case .webdis:
      guard let program = ChildProcess.find("webdis"), let redis = ChildProcess.find("redis-server") else { return nil }
      let redisPort = try LoopbackPort.free()
      try start("redis", redis, try Self.redis(port: redisPort, in: directory))
      try processes.last?.awaitReady(seconds: readySeconds) { _ = try WireSocket(port: redisPort) }
      try start("webdis", program, try webdis(port: port, redisPort: redisPort, in: directory))
    }
    let peer = WritePeer(kind: kind, address: SocketAddress(port: port), keys: options.keys, sizeBytes: options.size)
    try processes.last?.awaitReady(seconds: readySeconds) { try peer.prepare() }
    return RunningPeer(peer: peer, processes: processes)
  }

  private static func keyway(_ options: BenchDurableCommand, port: UInt16, in directory: ScratchDirectory) -> [String] {
    [
      "serve", "--host", "127.0.0.1", "--port", "\(port)", "--schema", options.schema,
      "--store", options.store ?? directory.file("keyway"), "--set", "log.level=error",
    ]
  }

  private static func etcd(port: UInt16, in directory: ScratchDirectory) throws -> [String] {
    let client = "http://127.0.0.1:\(port)"
    let others = "http://127.0.0.1:\(try LoopbackPort.free())"
    return [
      "--name", "bench", "--data-dir", directory.file("etcd"), "--log-level", "error",
      "--listen-client-urls", client, "--advertise-client-urls", client,
      "--listen-peer-urls", others, "--initial-advertise-peer-urls", others, "--initial-cluster", "bench=\(others)",
    ]
  }

  private static func redis(port: UInt16, in directory: ScratchDirectory) throws -> [String] {
    [
      "--port", "\(port)", "--bind", "127.0.0.1", "--dir", try directory.directory("redis"),
      "--appendonly", "yes", "--appendfsync", "always", "--save", "",
    ]
  }

  /// Writes a configuration of webdis like that of its package, except for the addresses, the log and connections to
  /// Redis for each of its threads.
  private static func webdis(port: UInt16, redisPort: UInt16, in directory: ScratchDirectory) throws -> [String] {
    let settings = """
      {"redis_host": "127.0.0.1", "redis_port": \(redisPort), "http_host": "127.0.0.1", "http_port": \(port),
       "threads": 2, "pool_size": 8, "daemonize": false, "websockets": false, "database": 0, "acl": [],
       "verbosity": 1, "logfile": "\(directory.file("webdis-own.log"))"}
      """
    return [try directory.write(settings, to: "webdis.json")]
  }
}

/// A server whose durable writes are measured, and the requests that it receives.
struct WritePeer: Hashable, Sendable {
  /// The kinds of servers.
  enum Kind: String, CaseIterable, Sendable {
    /// Keyway itself.
    case keyway
    /// etcd 3.4, through its JSON gateway.
    case etcd
    /// Redis, which syncs its append-only file before it answers, behind webdis.
    case webdis
  }

  /// The kind of the server.
  let kind: Kind
  /// The address of the server.
  let address: SocketAddress
  /// The number of keys that are written.
  let keys: Int
  /// The size of a value, in bytes.
  let sizeBytes: Int

  /// The length of a successful answer's body, in bytes, for webdis only: its answers have the status 200 even if Redis
  /// refuses, and `{"SET":[true,"OK"]}` means success.
  var answerBytes: Int? { kind == .webdis ? 19 : nil }

  /// Creates the objects that are set, or sends any request that succeeds once the server is up.
  fileprivate func prepare() throws {
    let connection = try WireConnection(address, timeoutSeconds: 5)
    switch kind {
    case .keyway:
      for key in 0..<keys { try connection.must(.setting(Self.objectPath(key), #"{"text":""}"#)) }
    case .etcd, .webdis: try connection.must(put(0, number: Self.number.replacing("?", with: "0")))
    }
  }

  /// The requests that set each key once, to a value of `sizeBytes` with a number in it.
  var writes: [NumberedRequest] { (0..<keys).map { numbered(put($0, number: Self.number)) } }

  /// The requests that read each key once; for Keyway only.
  var reads: [NumberedRequest] {
    (0..<keys).map { numbered(WireRequest("GET", Self.objectPath($0) + "/text")) }
  }

  private static let number = String(repeating: "?", count: NumberedRequest.digitCount)

  private func put(_ key: Int, number: String) -> WireRequest {
    let filling = String(repeating: "x", count: max(0, sizeBytes - number.count))
    switch kind {
    case .keyway: return .setting(Self.objectPath(key) + "/text", "\"\(number)\(filling)\"")
    case .etcd:
      // Decimal digits are valid in base64 too: digits before the value's text change its bytes, but not its length.
      let value = Self.base64(String(repeating: "x", count: sizeBytes)).dropFirst(number.count)
      let body = #"{"key":"\#(Self.base64("bench/\(key)"))","value":"\#(number)\#(value)"}"#
      return WireRequest("POST", "/v3/kv/put", body: body)
    case .webdis: return WireRequest("PUT", "/SET/bench-\(key)", body: number + filling)
    }
  }

  private func numbered(_ request: WireRequest) -> NumberedRequest {
    NumberedRequest(request.text(to: address))
  }

  private static func objectPath(_ key: Int) -> String { "/v1/objects/Note/durable-\(key)" }

  private static func base64(_ text: String) -> String { Data(text.utf8).base64EncodedString() }
}

import TestKit

/// A server that was started for a benchmark; it ends when nothing holds this any more.
struct RunningPeer {
  /// How long it may take to come up.
  private static let readySeconds = 30.0

  /// What it is sent.
  let peer: WritePeer
  /// All that work for it.
  private let processes: [ChildProcess]

  /// The numbers of the processes that work for it.
  var pids: [Int] { processes.map { Int($0.pid) } }

  /// So many connections that write.
  func writing(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.writes,
      answerBytes: peer.answerBytes)
  }

  /// So many connections that read.
  func reading(_ connections: Int) -> ClosedLoop.Lane {
    ClosedLoop.Lane(
      name: peer.kind.rawValue, address: peer.address, connections: connections, requests: peer.reads)
  }

  /// Starts a server, with its data in `directory`, and waits until it serves; nil where it is not installed.
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

  /// As its package configures it, but for the addresses, the log and connections to Redis for each of its threads.
  private static func webdis(port: UInt16, redisPort: UInt16, in directory: ScratchDirectory) throws -> [String] {
    let settings = """
      {"redis_host": "127.0.0.1", "redis_port": \(redisPort), "http_host": "127.0.0.1", "http_port": \(port),
       "threads": 2, "pool_size": 8, "daemonize": false, "websockets": false, "database": 0, "acl": [],
       "verbosity": 1, "logfile": "\(directory.file("webdis-own.log"))"}
      """
    return [try directory.write(settings, to: "webdis.json")]
  }
}

/// A server that was started for a benchmark; it ends when nobody holds this any more.
struct RunningPeer {
  /// How long it may take to come up.
  static let readySeconds = 30.0

  /// What it is sent.
  let peer: WritePeer
  /// All that work for it.
  private let processes: [PeerProcess]

  /// What those need who measure it.
  var site: PeerSite { PeerSite(peer: peer, pids: processes.map(\.pid)) }

  /// Starts a server, with its data in `directory`, and waits until it serves; nil where it is not installed.
  static func start(
    _ kind: WritePeer.Kind, _ plan: DurablePlan, in directory: ScratchDirectory
  ) throws(FanoutError) -> RunningPeer? {
    let port = try LoopbackPort.free()
    let address = try SocketAddress(server: "http://127.0.0.1:\(port)")
    let peer = WritePeer(kind: kind, address: address, keys: plan.keys, sizeBytes: plan.sizeBytes)
    var processes: [PeerProcess] = []
    switch kind {
    case .keyway:
      processes.append(try keyway(plan, port: port, in: directory))
    case .etcd:
      guard let program = PeerProcess.find("etcd") else { return nil }
      processes.append(try etcd(program, port: port, in: directory))
    case .webdis:
      guard let program = PeerProcess.find("webdis"), let redis = PeerProcess.find("redis-server") else { return nil }
      let redisPort = try LoopbackPort.free()
      let backend = try Self.redis(redis, port: redisPort, in: directory)
      processes.append(backend)
      let backendAddress = try SocketAddress(server: "http://127.0.0.1:\(redisPort)")
      try backend.awaitReady(seconds: readySeconds) { () throws(FanoutError) in
        _ = try PublishingConnection(backendAddress, timeoutSeconds: 5)
      }
      processes.append(try webdis(program, port: port, redisPort: redisPort, in: directory))
    }
    try processes.last?.awaitReady(seconds: readySeconds) { () throws(FanoutError) in
      let connection = try PublishingConnection(address, timeoutSeconds: 5)
      for request in peer.preparation { try connection.exchange(request) }
    }
    return RunningPeer(peer: peer, processes: processes)
  }

  private static func keyway(
    _ plan: DurablePlan, port: Int, in directory: ScratchDirectory
  ) throws(FanoutError) -> PeerProcess {
    let store = plan.keywayStore ?? "\(directory.path)/keyway"
    return try PeerProcess(
      "keyway", executable: plan.keywayExecutable,
      [
        "serve", "--host", "127.0.0.1", "--port", "\(port)", "--schema", plan.schema, "--store", store,
        "--set", "log.level=error",
      ], directory: directory.path)
  }

  private static func etcd(
    _ program: String, port: Int, in directory: ScratchDirectory
  ) throws(FanoutError) -> PeerProcess {
    let client = "http://127.0.0.1:\(port)"
    let others = "http://127.0.0.1:\(try LoopbackPort.free())"
    return try PeerProcess(
      "etcd", executable: program,
      [
        "--name", "bench", "--data-dir", "\(directory.path)/etcd", "--log-level", "error",
        "--listen-client-urls", client, "--advertise-client-urls", client,
        "--listen-peer-urls", others, "--initial-advertise-peer-urls", others, "--initial-cluster", "bench=\(others)",
      ], directory: directory.path)
  }

  private static func redis(
    _ program: String, port: Int, in directory: ScratchDirectory
  ) throws(FanoutError) -> PeerProcess {
    try PeerProcess(
      "redis", executable: program,
      [
        "--port", "\(port)", "--bind", "127.0.0.1", "--dir", try directory.directory("redis"),
        "--appendonly", "yes", "--appendfsync", "always", "--save", "",
      ], directory: directory.path)
  }

  /// As its package configures it, but for the addresses, the log and connections to Redis for each of its threads.
  private static func webdis(
    _ program: String, port: Int, redisPort: Int, in directory: ScratchDirectory
  ) throws(FanoutError) -> PeerProcess {
    let settings = """
      {"redis_host": "127.0.0.1", "redis_port": \(redisPort), "http_host": "127.0.0.1", "http_port": \(port),
       "threads": 2, "pool_size": 8, "daemonize": false, "websockets": false, "database": 0, "acl": [],
       "verbosity": 1, "logfile": "\(directory.path)/webdis-own.log"}
      """
    return try PeerProcess(
      "webdis", executable: program, [try directory.file("webdis.json", settings)], directory: directory.path)
  }
}

import Foundation
import Support

/// A PostgreSQL server for one test or benchmark: in a temporary folder, run by an unprivileged user, only on the
/// loopback address. It ends with the process, however that ends, and removes its folder. It may have a synchronous
/// standby, which receives every commit before it is acknowledged, and can take its place.
package final class PostgresServer: Sendable {
  /// The error if no server can be started.
  package struct Failure: Error, CustomStringConvertible {
    /// The error, with its remedy.
    package let description: String
  }

  private struct Supervisor {
    let process: SpawnedProcess
    let commands: FileHandle
    let answers: FileHandle
  }

  private struct Ports {
    var server: UInt16
    /// The port of the standby; nil if there is none.
    var standby: UInt16?
  }

  private let supervisor: Locked<Supervisor>
  private let ports: Locked<Ports>
  private let databases = Locked(0)

  private static let common = Locked<Result<PostgresServer, Failure>?>(nil)

  /// Returns the server that all tests of the process share. They must not stop it.
  package static func shared() throws(Failure) -> PostgresServer {
    try common.withLock { common throws(Failure) in
      if let common { return try common.get() }
      let made = Result { () throws(Failure) in try PostgresServer() }
      common = made
      return try made.get()
    }
  }

  /// Starts a server. Throws if PostgreSQL is not installed.
  package init() throws(Failure) {
    let programs = try Self.installation()
    let port = try Self.freePort()
    ports = Locked(Ports(server: port))
    let (commands, answers) = (Pipe(), Pipe())
    // PostgreSQL refuses to run as root.
    let prefix = geteuid() == 0 ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] : []
    let process = try Self.checked { () throws(LoopbackError) in
      try SpawnedProcess(
        "/usr/bin/env", prefix + ["sh", "-c", Self.script, "sh", programs, String(port)], folder: "/",
        input: commands.fileHandleForReading.fileDescriptor, output: answers.fileHandleForWriting.fileDescriptor,
        errors: STDERR_FILENO)
    }
    try? commands.fileHandleForReading.close()
    try? answers.fileHandleForWriting.close()
    supervisor = Locked(
      Supervisor(
        process: process, commands: commands.fileHandleForWriting, answers: answers.fileHandleForReading))
    guard try supervisor.withLock({ supervisor throws(Failure) in try Self.line(supervisor) }) == "ready" else {
      throw Failure(description: "PostgreSQL does not start")
    }
  }

  private static func freePort() throws(Failure) -> UInt16 {
    try checked { () throws(LoopbackError) in try LoopbackPort.free() }
  }

  private static func checked<Result>(_ body: () throws(LoopbackError) -> Result) throws(Failure) -> Result {
    do throws(LoopbackError) { return try body() } catch { throw Failure(description: "\(error)") }
  }

  /// The port of 127.0.0.1 that it listens on.
  package var port: UInt16 { ports.withLock { $0.server } }

  /// The supervisor's script: starts, stops and restarts the server as its input commands, until the input ends with
  /// this process.
  ///
  /// A standby receives all commits from its start on. `follow` returns once no commit is acknowledged without it, and
  /// it has the earlier ones.
  private static let script = """
    programs=$1 port=$2
    folder=$(mktemp -d /tmp/keyway-postgres-XXXXXX) || exit 1
    data=$folder/data standby=
    trap 'kill -QUIT "$server" $standby 2>/dev/null; wait; rm -rf "$folder"' EXIT
    "$programs/initdb" -D "$data" -A trust -U keyway -N -E UTF8 --locale=C >"$folder/log" 2>&1 || exit 1
    begin() {
      "$programs/postgres" -D "$1" -p "$2" -k "$folder" -c listen_addresses=127.0.0.1 -c fsync=off \\
        -c max_connections=300 -c wal_keep_size=64MB -c wal_retrieve_retry_interval=100ms >>"$folder/log" 2>&1 &
      begun=$!
      until "$programs/pg_isready" -q -h 127.0.0.1 -p "$2" -U keyway; do
        kill -0 "$begun" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
        sleep 0.05
      done
    }
    ask() {
      timeout 60 "$programs/psql" -X -A -t -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "$1" -U keyway -c "$2" postgres \\
        2>>"$folder/log"
    }
    settle() { ask "$port" "SELECT pg_logical_emit_message(true, 'keyway', '')" >>"$folder/log"; }
    follow() {
      timeout 60 "$programs/pg_basebackup" -D "$1" -R -X stream -c fast -N -h 127.0.0.1 -p "$port" -U keyway \\
        2>>"$folder/log" || return 1
      begin "$1" "$2"
      standby=$begun standby_data=$1 standby_port=$2 asked=0
      ask "$port" "ALTER SYSTEM SET synchronous_standby_names = '*'" || return 1
      ask "$port" "SELECT pg_reload_conf()" >>"$folder/log" || return 1
      until [ "$(ask "$port" "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'")" = 1 ]; do
        [ $((asked += 1)) -lt 600 ] || return 1
        sleep 0.05
      done
      settle
    }
    promote() {
      kill "-$1" "$server"
      wait "$server" 2>>"$folder/log"
      ask "$standby_port" "SELECT pg_promote(true, 30)" >>"$folder/log" || return 1
      rm -rf "$data"
      server=$standby data=$standby_data port=$standby_port standby=
    }
    begin "$data" "$port"
    server=$begun
    echo ready
    while read -r command database text; do
      case $command in
        sql)
          printed=$(printf %s "$text" | base64 -d | "$programs/psql" -X -A -t -q -v ON_ERROR_STOP=1 "$database" 2>&1)
          echo "$? $(printf %s "$printed" | base64 -w 0)" ;;
        stop) kill -QUIT "$server"; wait "$server"; echo stopped ;;
        start) begin "$data" "$port"; server=$begun; echo ready ;;
        follow) follow "$folder/data-$database" "$database" && echo following || echo failed ;;
        settle) settle && echo settled || echo failed ;;
        promote) promote "$database" && echo promoted || echo failed ;;
      esac
    done
    """

  /// Stops it at once, like a crash of its machine that leaves the disk intact.
  package func stop() throws(Failure) { try require("stopped", to: "stop") }

  /// Starts it again after `stop`.
  package func start() throws(Failure) { try require("ready", to: "start") }

  /// Adds a standby. From then on no commit is acknowledged without it.
  package func addStandby() throws(Failure) {
    let port = try Self.freePort()
    try require("following", to: "follow \(port)")
    ports.withLock { $0.standby = port }
  }

  /// True if it has a standby.
  package var hasStandby: Bool { ports.withLock { $0.standby != nil } }

  /// The end of a server whose standby takes its place.
  package enum Ending: String, Hashable, Sendable, CaseIterable {
    /// Its main process is killed, and its other processes end by themselves.
    case kill = "KILL"
    /// All its processes end at once.
    case quit = "QUIT"
  }

  /// Promotes the standby and ends the server. Afterwards `port` is another one, and there is no standby. First waits
  /// until the standby has everything that can be read: after a crash, PostgreSQL shows commits that it has not
  /// acknowledged, and that the standby may lack.
  package func failOver(_ ending: Ending) throws(Failure) {
    guard let standby = ports.withLock({ $0.standby }) else { throw Failure(description: "there is no standby") }
    try require("settled", to: "settle")
    try require("promoted", to: "promote \(ending.rawValue)")
    ports.withLock { $0 = Ports(server: standby) }
  }

  /// Creates an empty database, and returns its address for libpq.
  package func makeDatabase() throws(Failure) -> String {
    let number = databases.withLock { databases in
      databases += 1
      return databases
    }
    let name = "keyway\(number)"
    try execute("CREATE DATABASE \(name)", in: "postgres")
    return address(of: name)
  }

  /// Returns the address of a database, with another port if a proxy is in front of it.
  package func address(of database: String, port: UInt16? = nil) -> String {
    "postgres://keyway@127.0.0.1:\(port ?? self.port)/\(database)"
  }

  /// Executes SQL in a database, given by its name or address, and returns the output without headers and frames.
  @discardableResult
  package func execute(_ sql: String, in database: String) throws(Failure) -> String {
    let address = database.hasPrefix("postgres:") ? database : address(of: database)
    let answer = try ask("sql \(address) \(Data(sql.utf8).base64EncodedString())").split(separator: " ")
    let text = answer.dropFirst().first.flatMap { Data(base64Encoded: String($0)) } ?? Data()
    let printed = String(decoding: text, as: UTF8.self)
    guard answer.first == "0" else { throw Failure(description: "\(sql): \(printed)") }
    return printed
  }

  private func require(_ answer: String, to command: String) throws(Failure) {
    guard try ask(command) == answer else { throw Failure(description: "PostgreSQL does not \(command)") }
  }

  /// Sends the supervisor a command, and returns its one-line response. The supervisor forks in place of this process:
  /// between fork and exec, a child of this process would hold the locks of all open stores.
  private func ask(_ command: String) throws(Failure) -> String {
    try supervisor.withLock { supervisor throws(Failure) in
      supervisor.commands.write(Data("\(command)\n".utf8))
      return try Self.line(supervisor)
    }
  }

  private static func line(_ supervisor: Supervisor) throws(Failure) -> String {
    var line = Data()
    while line.last != UInt8(ascii: "\n") {
      let more = supervisor.answers.availableData
      guard !more.isEmpty else { throw Failure(description: "PostgreSQL does not start; its log stands above") }
      line += more
    }
    return String(decoding: line.dropLast(), as: UTF8.self)
  }

  /// Returns the folder of the programs of the newest PostgreSQL.
  private static func installation() throws(Failure) -> String {
    let root = "/usr/lib/postgresql"
    let versions = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    let newest = versions.compactMap(Int.init).max().map { "\(root)/\($0)/bin" }
    guard let newest, FileManager.default.isExecutableFile(atPath: "\(newest)/initdb") else {
      throw Failure(description: "PostgreSQL is not installed: apt-get install postgresql")
    }
    return newest
  }
}

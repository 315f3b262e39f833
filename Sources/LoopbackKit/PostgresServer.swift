import Foundation
import Locking

/// A PostgreSQL of a test's or a benchmark's own: in a temporary folder, by an unprivileged user, on the loopback
/// address alone. It ends with the process, however that ends, and takes its folder away.
package final class PostgresServer: Sendable {
  /// Why there is none.
  package struct Failure: Error, CustomStringConvertible {
    /// What to do about it.
    package let description: String
  }

  private struct Supervisor {
    let process: Process
    let commands: FileHandle
    let answers: FileHandle
  }

  private let supervisor: Locked<Supervisor>
  /// The port of 127.0.0.1 that it listens on.
  package let port: UInt16
  private let databases = Locked(0)

  private static let common = Locked<Result<PostgresServer, Failure>?>(nil)

  /// The one that all tests of the process share that do not stop it.
  package static func shared() throws(Failure) -> PostgresServer {
    try common.withLock { common throws(Failure) in
      if let common { return try common.get() }
      let made = Result { () throws(Failure) in try PostgresServer() }
      common = made
      return try made.get()
    }
  }

  /// Starts one. Throws where PostgreSQL is not installed.
  package init() throws(Failure) {
    let programs = try Self.installation()
    do throws(LoopbackError) {
      port = try LoopbackPort.free()
    } catch {
      throw Failure(description: "\(error)")
    }
    let process = Process()
    let (commands, answers) = (Pipe(), Pipe())
    // The server refuses to be run by root.
    let prefix = geteuid() == 0 ? ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] : []
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = prefix + ["sh", "-c", Self.script, "sh", programs, String(port)]
    process.currentDirectoryURL = URL(fileURLWithPath: "/")
    (process.standardInput, process.standardOutput) = (commands, answers)
    do {
      try process.run()
    } catch {
      throw Failure(description: "PostgreSQL cannot be started: \(error)")
    }
    supervisor = Locked(
      Supervisor(
        process: process, commands: commands.fileHandleForWriting, answers: answers.fileHandleForReading))
    guard try supervisor.withLock({ supervisor throws(Failure) in try Self.line(supervisor) }) == "ready" else {
      throw Failure(description: "PostgreSQL does not start")
    }
  }

  /// Begins, stops and begins again as its input says, until that ends: then this process has ended too.
  private static let script = """
    programs=$1 port=$2
    folder=$(mktemp -d /tmp/keyway-postgres-XXXXXX) || exit 1
    trap 'kill -QUIT "$server" 2>/dev/null; wait; rm -rf "$folder"' EXIT
    "$programs/initdb" -D "$folder/data" -A trust -U keyway -N -E UTF8 --locale=C >"$folder/log" 2>&1 || exit 1
    begin() {
      "$programs/postgres" -D "$folder/data" -p "$port" -k "$folder" -c listen_addresses=127.0.0.1 \\
        -c fsync=off -c max_connections=300 >>"$folder/log" 2>&1 &
      server=$!
      until "$programs/pg_isready" -q -h 127.0.0.1 -p "$port" -U keyway; do
        kill -0 "$server" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
        sleep 0.05
      done
    }
    begin
    echo ready
    while read -r command database text; do
      case $command in
        sql)
          printed=$(printf %s "$text" | base64 -d | "$programs/psql" -X -A -t -q -v ON_ERROR_STOP=1 "$database" 2>&1)
          echo "$? $(printf %s "$printed" | base64 -w 0)" ;;
        stop) kill -QUIT "$server"; wait "$server"; echo stopped ;;
        start) begin; echo ready ;;
      esac
    done
    """

  /// Ends it at once, as a crash of its machine does, but for its disk.
  package func stop() throws(Failure) { try require("stopped", to: "stop") }

  /// Begins again after `stop`.
  package func start() throws(Failure) { try require("ready", to: "start") }

  /// The address of a new, empty database, as libpq reads it.
  package func makeDatabase() throws(Failure) -> String {
    let number = databases.withLock { databases in
      databases += 1
      return databases
    }
    let name = "keyway\(number)"
    try execute("CREATE DATABASE \(name)", in: "postgres")
    return address(of: name)
  }

  /// How a database is reached, by another port where there is something before it.
  package func address(of database: String, port: UInt16? = nil) -> String {
    "postgres://keyway@127.0.0.1:\(port ?? self.port)/\(database)"
  }

  /// Carries out SQL in a database, given by its name or address, and gives what it prints, without heads and frames.
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

  /// Gives the supervisor a command, and what it answers with one line. It has children in place of this process:
  /// between its fork and its exec a child holds the locks of all stores that are open.
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

  /// Where the programs of the newest PostgreSQL are.
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

import Foundation
import TestKit

/// The server that is attacked: a process with a bound on its address space and its descriptors.
final class NeighbourServer {
  /// Where it is.
  let port: UInt16
  private let process: ChildProcess
  /// The time that a start may take, with whatever the attack has left, in seconds.
  private static let startSeconds = 120.0

  /// Starts a program on an empty store in a folder, and waits until it serves. `addressSpaceBytes` is what
  /// `ulimit -v` bounds; nil for no bound.
  init(
    program: String, folder: ScratchDirectory, settings: [String], addressSpaceBytes: Int?, descriptors: Int
  ) throws {
    port = try LoopbackPort.free()
    let schema = try folder.write(NeighbourWorld.schema, to: "schema.yaml")
    let space = addressSpaceBytes.map { "\($0 / 1_024)" } ?? "unlimited"
    process = try ChildProcess(
      "/bin/sh",
      [
        "-c", #"ulimit -v "$0" && ulimit -n "$1" && shift && exec "$@""#, space, "\(descriptors)", program, "serve",
        "--port", "\(port)", "--schema", schema, "--store", folder.file("store"), "--set", "seed=none",
      ] + settings.flatMap { ["--set", $0] }, name: "keyway serve")
    try process.awaitReady(seconds: Self.startSeconds) {
      try WireConnection(SocketAddress(port: port), timeoutSeconds: 5).must(WireRequest("GET", "/readyz"))
    }
  }

  /// Its process.
  var pid: Int { Int(process.pid) }

  /// How it ended, with the last line that it logged; nil while it runs.
  var ending: String? {
    guard !process.isRunning, let status = try? process.exitStatus(within: 1) else { return nil }
    let last = process.errors.split(separator: "\n").last { !$0.isEmpty } ?? ""
    return "status \(status): \(last.prefix(200))"
  }

  /// Ends it at once, and waits until it has ended: nothing of it is needed any more but its store.
  func kill() {
    process.send(SIGKILL)
    _ = try? process.exitStatus(within: 20)
  }

  /// What `memory.bytes` is set to for a program with these settings; nil where it is not.
  static func memoryBytes(program: String, settings: [String]) throws -> Int? {
    let printing = try ChildProcess(
      program, ["serve", "--print-config"] + settings.flatMap { ["--set", $0] }, name: "keyway serve")
    _ = try printing.exitStatus(within: 30)
    var isInside = false
    for line in printing.output.split(separator: "\n") {
      if !line.hasPrefix(" ") { isInside = line.hasPrefix("memory:") }
      guard isInside, let match = line.firstMatch(of: /^\s+bytes: ([0-9]+)/) else { continue }
      // 0 leaves it to the machine, which this process does not know as the server does.
      return Int(match.1).flatMap { $0 > 0 ? $0 : nil }
    }
    return nil
  }
}

import ArgumentParser
import CommandSupport
import Foundation
import Glibc
import Histogram
import Support
import TestKit

/// `keyway-bench durable`: durable writes, compared with other servers on the same disk.
struct BenchDurableCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "durable",
    abstract: "Starts Keyway, etcd and webdis on Redis, and measures the durable writes of each.",
    discussion: """
      keyway-bench durable --directory /var/tmp --rounds 5

      Every server runs as a child of this command, on a free port of 127.0.0.1, with its data in one new directory,
      and ends with it. Each connection sets one key after the other and waits for each response: with etcd through its
      JSON gateway, with webdis on a Redis that has `appendfsync always`. Then it reads from Keyway alone, and again
      while others write. A server that is not installed is skipped.

      The servers take turns in each round, and the report gives medians and all rounds. The servers share the cores
      with the load generator and with all other programs: "others" is the number of cores that those took. Above a
      few hundredths, the figures reflect the others rather than a server, because a process that waits for the disk
      loses its place on a busy core.

      Exits with 1 if a response was wrong. Figures are printed and not judged.
      """)

  @Option(help: "The number of rounds.")
  var rounds = 3

  @Option(help: ArgumentHelp("The duration of each measurement.", valueName: "seconds"))
  var seconds = 2.0

  @Option(help: "The number of connections that write at once; one connection alone is measured too.")
  var connections = 64

  @Option(help: "The number of connections that read.")
  var readers = 64

  @Option(help: "The number of connections that write while others read.")
  var writers = 16

  @Option(help: "The number of keys to write.")
  var keys = 100

  @Option(help: ArgumentHelp("The size of a value.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("The parent of the new directory with the data of all servers.", valueName: "directory"))
  var directory = "."

  @Option(help: ArgumentHelp("The schema of Keyway; it must have an entity Note with a key text.", valueName: "file"))
  var schema = "example"

  @Option(help: ArgumentHelp("Keyway's store; by default a directory of its own.", valueName: "directory|memory"))
  var store: String?

  @Option(
    parsing: .upToNextOption, help: "The servers to measure: keyway, etcd, webdis.",
    transform: { name in
      guard let kind = WritePeer.Kind(rawValue: name) else { throw ValidationError("'\(name)' is not a known server") }
      return kind
    })
  var peers: [WritePeer.Kind] = WritePeer.Kind.allCases

  @OptionGroup var report: ReportOptions

  func validate() throws {
    try ReportOptions.check([
      ("--rounds", rounds, 1...100), ("--connections", connections, 1...1000), ("--readers", readers, 1...1000),
      ("--writers", writers, 1...1000), ("--keys", keys, 1...10_000), ("--size", size, 30...8000),
    ])
    guard (0.1...60).contains(seconds) else { throw ValidationError("--seconds must be between 0.1 and 60") }
  }

  func run() async throws {
    let options = self
    try await Interruption.cancelling {
      do {
        // Blocks its thread for the duration of the benchmark; nothing else in this process needs a thread.
        try options.report.show(try DurableRun.run(options))
      } catch {
        try Task.checkCancellation()
        throw error
      }
    }
  }
}

/// One benchmark of durable writes: all servers are on one disk, and are measured in turn, round after round.
private enum DurableRun {
  /// The time that each loop runs before it is measured, in seconds.
  private static let warmUpSeconds = 0.3
  /// The time for which the disk alone is measured, in each of two ways and in each round, in seconds.
  private static let diskSeconds = 0.25
  /// The pause between two measurements, in microseconds, so that the remaining work of one server does not slow the
  /// next.
  private static let restMicroseconds: UInt32 = 200_000

  /// Runs the benchmark to its end, or until something makes its figures worthless.
  static func run(_ options: BenchDurableCommand) throws -> DurableReport {
    let directory = try ScratchDirectory(in: options.directory)
    var running: [RunningPeer] = []
    defer {
      // End the servers before their data is removed.
      running.removeAll()
      directory.remove()
    }
    var report = DurableReport(connections: options.connections, readers: options.readers, writers: options.writers)
    for kind in options.peers {
      if let peer = try RunningPeer.start(kind, options, in: directory) {
        running.append(peer)
      } else {
        report.skipped.append(kind.rawValue)
      }
    }
    for _ in 0..<options.rounds { report.rounds.append(try round(options, running, directory: directory.path)) }
    return report
  }

  private static func round(
    _ options: BenchDurableCommand, _ peers: [RunningPeer], directory: String
  ) throws -> DurableReport.Round {
    var round = DurableReport.Round()
    round.disk = try DiskProbe(directory: directory, seconds: diskSeconds)
    for connections in Set([options.connections, 1]).sorted(by: >) {
      for peer in peers {
        let measured = try measure([peer.writing(connections)], options, peers)
        round.writes[DurableReport.Subject(peer: peer.peer.kind, connections: connections)] = measured[0]
      }
    }
    guard let keyway = peers.first(where: { $0.peer.kind == .keyway }) else { return round }
    round.readsAlone = try measure([keyway.reading(options.readers)], options, peers)[0]
    let both = try measure([keyway.reading(options.readers), keyway.writing(options.writers)], options, peers)
    round.readsWhileWriting = both[0]
    round.writesWhileReading = both[1]
    return round
  }

  /// Performs one measurement, and returns the figures of each lane.
  private static func measure(
    _ lanes: [ClosedLoop.Lane], _ options: BenchDurableCommand, _ peers: [RunningPeer]
  ) throws -> [DurableReport.Load] {
    usleep(restMicroseconds)
    var loop = try ClosedLoop(lanes)
    let before = try CPUTimes.now(of: peers)
    var loads = try loop.run(warmUpSeconds: warmUpSeconds, seconds: options.seconds)
    let cores = try CPUTimes.now(of: peers).cores(since: before)
    for lane in loads.indices { loads[lane].cores = cores }
    return loads
  }
}

/// The time that a disk takes to store a block durably: a lower bound for everything that waits for it.
struct DiskProbe: Hashable, Sendable {
  /// The time to append a block to a growing file, with `fdatasync`.
  var append = Latency()
  /// The time to overwrite a block that was written before, with `fdatasync`.
  var overwrite = Latency()

  /// The size of a block, in bytes.
  static let blockBytes = 4096
  /// The maximum size of the file, in blocks.
  private static let maximumBlocks = 8192

  /// Creates figures without measurements.
  init() {}

  /// Measures both ways with a file in `directory`, for `seconds` each, and removes the file.
  init(directory: String, seconds: Double) throws {
    let path = directory + "/disk-probe"
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else { throw LoopbackError(call: "open \(path)") }
    defer {
      close(descriptor)
      unlink(path)
    }
    let blocks: Int
    (append, blocks) = try Self.measure(descriptor, seconds: seconds, blocks: Self.maximumBlocks)
    (overwrite, _) = try Self.measure(descriptor, seconds: seconds, blocks: blocks)
  }

  /// Writes one block after the other, and starts again at the first after the last. Returns the number of blocks that
  /// were written, which is smaller if the time is up before the last one.
  private static func measure(
    _ descriptor: Int32, seconds: Double, blocks: Int
  ) throws -> (latency: Latency, blocks: Int) {
    let block = [UInt8](repeating: UInt8(ascii: "x"), count: blockBytes)
    var histogram = Latency.histogram()
    let start = SystemClock.now()
    let end = start + UInt64(seconds * 1e9)
    var (now, count) = (start, 0)
    while now < end, count < maximumBlocks {
      let written = pwrite(descriptor, block, block.count, off_t(count % max(blocks, 1) * blockBytes))
      guard written == block.count, fdatasync(descriptor) == 0 else { throw LoopbackError(call: "write a block") }
      let done = SystemClock.now()
      histogram.record((done - now) / 1000)
      (now, count) = (done, count + 1)
    }
    return (Latency(histogram), min(count, blocks))
  }
}

/// The CPU time that all processes had used at a moment.
struct CPUTimes: Hashable, Sendable {
  /// The number of cores that were busy between two moments, by user.
  struct Cores: Hashable, Sendable {
    /// The cores that the servers used.
    var servers = 0.0
    /// The cores that the load generator used.
    var generator = 0.0
    /// The cores that all other processes used, including the kernel's threads.
    var others = 0.0
  }

  private var moment: UInt64
  private var servers: Double
  private var generator: Double
  private var machine: Double

  /// Returns the present CPU times.
  static func now(of peers: [RunningPeer]) throws -> CPUTimes {
    var servers = 0.0
    for pid in peers.flatMap(\.pids) { servers += try ProcessFigures(pid: pid).cpuSeconds }
    return CPUTimes(
      moment: SystemClock.now(), servers: servers,
      generator: try ProcessFigures(pid: Int(getpid())).cpuSeconds, machine: try MachineLoad.now().busySeconds)
  }

  /// Returns the cores used since `earlier`.
  func cores(since earlier: CPUTimes) -> Cores {
    let seconds = max(Double(moment - earlier.moment) / 1e9, 1e-9)
    var cores = Cores(
      servers: (servers - earlier.servers) / seconds, generator: (generator - earlier.generator) / seconds)
    // Never negative: each clock has a resolution of 10 ms.
    cores.others = max(0, (machine - earlier.machine) / seconds - cores.servers - cores.generator)
    return cores
  }
}

/// The CPU time of all processes of the machine, from /proc: it reveals how other programs affect a measurement.
struct MachineLoad: Hashable, Sendable {
  /// The time that all cores were busy since the machine started, in seconds, without waiting for disks.
  var busySeconds: Double

  /// Reads the present figure.
  static func now() throws -> MachineLoad {
    guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8), let load = MachineLoad(stat: text)
    else { throw LoopbackError("/proc/stat cannot be read") }
    return load
  }

  /// Reads the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, …, in ticks.
  init?(stat: String, ticksPerSecond: Int = sysconf(Int32(_SC_CLK_TCK))) {
    let fields = stat.prefix { !$0.isNewline }.split(separator: " ")
    guard fields.count > 7, fields[0] == "cpu" else { return nil }
    let ticks = [1, 2, 3, 6, 7].reduce(0) { $0 + (Int(fields[$1]) ?? 0) }
    busySeconds = Double(ticks) / Double(ticksPerSecond)
  }
}

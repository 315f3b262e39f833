import ArgumentParser
import Foundation
import Glibc
import HTTPServer
import KeyValueModel
import Support
import TestKit

/// The client that attacks: its requests come from an address of its own, and it keeps sockets open, up to a limit. Any
/// thread may use it.
final class Neighbour: Sendable {
  /// The address of the neighbour; the others use 127.0.0.1.
  private static let source = "127.0.0.2"
  /// The time limit for an answer, in seconds.
  private static let patienceSeconds = 20.0

  private struct State {
    var tally = NeighbourTally()
    var held: [Int32] = []
    var isFinished = false
  }

  /// The address of the server, for connections from the neighbour's own address.
  let address: SocketAddress
  /// The epoch of the server's store.
  let epoch: String
  private let maximumHeld: Int
  private let state = Locked(State())

  /// Creates a client that keeps at most `maximumHeld` sockets open.
  init(port: UInt16, epoch: String, maximumHeld: Int) {
    (address, self.epoch, self.maximumHeld) = (SocketAddress(port: port, from: Self.source), epoch, maximumHeld)
  }

  /// True if the attack must end.
  fileprivate var isFinished: Bool { state.withLock { $0.isFinished } }

  /// The results of the requests so far.
  fileprivate var tally: NeighbourTally { state.withLock { $0.tally } }

  /// Ends the attack, and closes all kept sockets.
  fileprivate func end() {
    let held = state.withLock { state in
      state.isFinished = true
      defer { state.held = [] }
      return state.held
    }
    for descriptor in held { NeighbourConnection.reset(descriptor) }
  }

  /// Sends a request, and reads and discards its answer. Returns the status; nil if there was no answer.
  @discardableResult
  func send(_ request: WireRequest) -> Int? {
    let status = try? connection().exchange(request, before: Deadline(seconds: Self.patienceSeconds)) { isFinished }
    state.withLock { $0.tally.count(status) }
    return status
  }

  /// Sends bytes on a new connection and keeps that open, unread. If the limit is reached, closes the oldest one. If
  /// `answers` is true, waits for the status of the answer first.
  func hold(_ bytes: [UInt8], answers: Bool, receiveBufferBytes: Int32? = nil) {
    var status: Int? = 200
    do {
      let connection = try connection(receiveBufferBytes)
      do {
        try connection.send(bytes, before: Deadline(seconds: 2))
      } catch let error as LoopbackError where error.reason == .timedOut {
        // The server does not read the rest, which stays in the kernel.
      }
      if answers { status = try connection.status(before: Deadline(seconds: Self.patienceSeconds)) { isFinished } }
      if status == 200, let descriptor = connection.kept() { keep(descriptor) }
    } catch {
      status = nil
    }
    state.withLock { [status] in $0.tally.count(status) }
  }

  /// Opens a stream and keeps it open, but reads only its head.
  func holdStream(_ target: String, receiveBufferBytes: Int32? = 4_096) {
    let request = WireRequest("GET", target, ["Accept": "text/event-stream"])
    hold(Array(request.text(to: address).utf8), answers: true, receiveBufferBytes: receiveBufferBytes)
  }

  /// The number of sockets that are kept open.
  var heldCount: Int { state.withLock { $0.held.count } }

  private func keep(_ descriptor: Int32) {
    let surplus = state.withLock { state -> Int32? in
      guard !state.isFinished else { return descriptor }
      state.held.append(descriptor)
      return state.held.count > maximumHeld ? state.held.removeFirst() : nil
    }
    if let surplus { NeighbourConnection.reset(surplus) }
  }

  private func connection(_ receiveBufferBytes: Int32? = nil) throws -> NeighbourConnection {
    do {
      return try NeighbourConnection(address, receiveBufferBytes: receiveBufferBytes)
    } catch {
      // The server accepts no connection, or the machine has no free port: a million attempts a second would gain
      // nothing.
      usleep(2_000)
      throw error
    }
  }
}

/// A connection whose answers are read and discarded, however long they are.
private final class NeighbourConnection {
  private static let maximumHeadBytes = 65_536
  /// The size of the kernel send buffer of the neighbour, in bytes. It takes memory of the server's machine, which a
  /// remote neighbour would not.
  private static let sendBufferBytes: Int32 = 65_536

  private let socket: WireSocket
  private let address: SocketAddress

  init(_ address: SocketAddress, receiveBufferBytes: Int32? = nil) throws {
    socket = try WireSocket(address, receiveBufferBytes: receiveBufferBytes)
    var size = Self.sendBufferBytes
    setsockopt(socket.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    self.address = address
  }

  /// Sends bytes.
  func send(_ bytes: [UInt8], before deadline: Deadline) throws {
    try socket.send(bytes, before: deadline)
  }

  /// Sends a request, and returns the status of its answer once the answer is complete. Gives up when `isFinished`
  /// returns true.
  func exchange(_ request: WireRequest, before deadline: Deadline, isFinished: () -> Bool) throws -> Int {
    var request = request
    request.headers["Connection"] = "close"
    try send(Array(request.text(to: address).utf8), before: deadline)
    let status = try status(before: deadline, isFinished: isFinished)
    while try !receive(before: deadline, isFinished).isEmpty {}
    return status
  }

  /// Returns the status of the next answer, of which only the head, and bytes received with it, have been read.
  func status(before deadline: Deadline, isFinished: () -> Bool) throws -> Int {
    var head: [UInt8] = []
    while true {
      let bytes = try receive(before: deadline, isFinished)
      guard !bytes.isEmpty, head.count < Self.maximumHeadBytes else { throw LoopbackError(.connectionClosed) }
      head += bytes
      guard let response = WireResponse(head: head.prefix(32)) ?? nil else { continue }
      return response.status
    }
  }

  /// Returns a descriptor that keeps the connection open, for the caller to close; nil if the system has none left.
  func kept() -> Int32? {
    let descriptor = fcntl(socket.descriptor, F_DUPFD_CLOEXEC, 0)
    return descriptor >= 0 ? descriptor : nil
  }

  /// Closes a descriptor with a reset, so that no port stays in use.
  static func reset(_ descriptor: Int32) {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
  }

  private func receive(before deadline: Deadline, _ isFinished: () -> Bool) throws -> [UInt8] {
    while true {
      do {
        return try socket.receive(before: Deadline(seconds: 0.2), atMost: 262_144)
      } catch {
        guard error.reason == .timedOut, !deadline.hasPassed, !isFinished() else { throw error }
      }
    }
  }
}

/// The results of a client's requests.
struct NeighbourTally: Hashable, Sendable {
  /// The number of requests answered with success.
  var answered = 0
  /// The number of requests refused because of a limit: 429 or 503.
  var refused = 0
  /// The number of requests answered with another status.
  var other = 0
  /// The number of requests without an answer: the connection was not accepted, was closed, or timed out.
  var cut = 0

  /// Counts a status; nil for no answer.
  mutating func count(_ status: Int?) {
    switch status {
    case nil: cut += 1
    case .some(200..<400): answered += 1
    case 429, 503: refused += 1
    default: other += 1
    }
  }

  /// The number of requests that were not answered with success.
  var failed: Int { refused + other + cut }

  /// Creates a tally of 0 requests.
  init() {}

  /// Creates a tally from the text of `json`. Throws if the text is not one.
  init(json text: String) throws {
    let json = try Value(json: text)
    answered = json["answered"].whole ?? 0
    refused = json["refused"].whole ?? 0
    other = json["other"].whole ?? 0
    cut = json["cut"].whole ?? 0
  }

  /// All counts as JSON.
  var json: Value {
    .object([
      "answered": .count(answered), "refused": .count(refused), "other": .count(other), "cut": .count(cut),
    ])
  }
}

/// `keyway-bench attack`: the neighbour's process in `keyway-bench neighbour`, and so hidden from the help. It attacks
/// a server for some seconds, and prints the results.
///
/// It is a process of its own: its threads, which run only while nothing else needs a processor, would otherwise hold
/// locks of the allocator and of the address space that the measuring threads need.
struct BenchAttackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attack", abstract: "Attacks a server for keyway-bench neighbour.", shouldDisplay: false)

  @Option(help: "The port of the server.")
  var port: UInt16

  @Option(help: "The epoch of its store.")
  var epoch: String

  @Option(help: "The attack, by its name.")
  var attack: String

  @Option(help: "The duration of the attack, in seconds.")
  var seconds: Int

  @Option(help: "The seed of its random choices.")
  var seed: UInt64

  @Option(help: "The number of its threads.")
  var threads: Int

  @Option(help: "Their nice value; without it, they run only while nothing else needs a processor.")
  var nice: Int?

  @Option(help: "The maximum number of connections that it keeps open.")
  var held: Int

  func run() throws {
    guard let attack = AttackTable.named([attack])?.first else { throw ValidationError("'\(attack)' is not an attack") }
    let neighbour = Neighbour(port: port, epoch: epoch, maximumHeld: held)
    for number in 0..<threads {
      Thread.detachNewThread { [nice, seed] in
        if let nice { SystemThread.setNice(nice) } else { SystemThread.runWhenIdle() }
        var random = SplitMix64(seed: seed, part: UInt64(number))
        while !neighbour.isFinished { attack.step(neighbour, &random) }
      }
    }
    sleep(UInt32(seconds))
    neighbour.end()
    print(neighbour.tally.json.json)
  }
}

import Foundation
import Support
import TestKit

/// One client of several nodes: it writes and reads registers, at changing nodes, and repeats requests that may be
/// repeated.
final class RegisterClient: Sendable {
  /// The time limit for a request, in seconds; no fault should delay one longer.
  static let patienceSeconds = 20.0

  /// The time, in seconds, that an impatient client waits for a request that it may repeat: about as long as other
  /// nodes wait for the one that appends, so that a request may be under way at two of them.
  private static let impatienceSeconds = 0.1...1.2

  /// The maximum pause between two requests, in microseconds, so that requests are sent throughout the duration of
  /// faults.
  private static let pauseMicroseconds: useconds_t = 5_000

  private struct State {
    var random: SplitMix64
    var versions: [String: RegisterRequest.Version] = [:]
    var isRunning = false
  }

  /// A connection to one of the nodes.
  private struct Line {
    var door: NodeDoor
    var connection: WireConnection
  }

  private let number: Int
  /// True if the client writes; otherwise it only sends writes that have to be refused.
  private let isWriter: Bool
  private let writesPercent: Int
  private let registers: [String]
  private let doors: [NodeDoor]
  private let ledger: RegisterLedger
  private let state: Locked<State>

  /// Creates a client of which `writesPercent` of the requests are writes, and the others reads; `writers` is the
  /// number of clients with a register of their own: those with lower numbers.
  init(
    _ number: Int, writers: Int, writesPercent: Int, seed: UInt64, doors: [NodeDoor], ledger: RegisterLedger
  ) {
    (self.number, self.writesPercent, self.doors, self.ledger) = (number, writesPercent, doors, ledger)
    isWriter = number < writers
    registers = RegisterSchema.registers(writers: writers)
    state = Locked(State(random: SplitMix64(seed: seed, part: UInt64(number) + 1)))
  }

  /// True while its thread runs.
  var isRunning: Bool { state.withLock { $0.isRunning } }

  /// Sends at most `requests` requests on a thread of its own, until `isFinished` is true.
  func start(requests: Int, isFinished: Locked<Bool>) {
    state.withLock { $0.isRunning = true }
    Thread.detachNewThread { [self] in
      var line: Line?
      for _ in 0..<requests where !isFinished.withLock({ $0 }) && ledger.promises.isFaultless {
        if line?.door.isForRefusals ?? false || chance(writesPercent) { write(on: &line) } else { read(on: &line) }
        usleep(state.withLock { useconds_t.random(in: 0...Self.pauseMicroseconds, using: &$0.random) })
      }
      state.withLock { $0.isRunning = false }
    }
  }

  private func chance(_ percent: Int) -> Bool { state.withLock { $0.random.chance(percent) } }

  // MARK: Requests

  private func write(on line: inout Line?) {
    let value = ledger.nextValue()
    let request = state.withLock { [number, isWriter] state in
      isWriter
        ? RegisterRequest.random(writer: number, versions: state.versions, value: value, using: &state.random)
        : RegisterRequest.refused(value: value, using: &state.random)
    }
    carryOut(request, on: &line)
  }

  /// Sends a request, repeatedly if that is safe, and notes the outcome. Returns its cursor if it was acknowledged.
  @discardableResult
  private func carryOut(_ request: RegisterRequest, on line: inout Line?) -> Cursor? {
    let deadline = Deadline(seconds: Self.patienceSeconds)
    var first: RegisterLedger.Moment?
    var impatience =
      request.isRepeatable && chance(30)
      ? state.withLock { Double.random(in: Self.impatienceSeconds, using: &$0.random) } : nil
    while connect(&line) || first != nil {
      let moment = ledger.moment()
      let (text, response) = exchange(request.request, within: impatience, on: &line)
      impatience = nil
      if let response, response.isSuccess {
        ledger.acknowledge(request, text, at: first ?? moment, response)
        learn(request, response)
        if request.isRepeatable, chance(25) { askAgain(request, for: response, on: &line) }
        return Cursor(of: response)
      }
      if let response, response.status != 503, response.problem != "idempotency-key-in-use" {
        ledger.refuse(request, text, at: moment, response)
        if let first { ledger.leaveOpen(request, text, at: first) }
        return nil
      }
      first = first ?? moment
      guard request.isRepeatable, !deadline.hasPassed, ledger.promises.isFaultless else {
        ledger.leaveOpen(request, text, at: first ?? moment)
        return nil
      }
      line = nil
    }
    return nil
  }

  /// Repeats a request that was acknowledged, perhaps at another node, like a client that has lost the answer: it gets
  /// the same answer, and nothing is changed.
  private func askAgain(_ request: RegisterRequest, for answer: WireResponse, on line: inout Line?) {
    line = nil
    guard connect(&line) else { return }
    let (text, response) = exchange(request.request, on: &line)
    guard let response, response.status != 503, response.problem != "idempotency-key-in-use" else { return }
    if response.status != answer.status || Cursor(of: response) != Cursor(of: answer) {
      ledger.promises.violation(
        "\(text) was answered \(answer.status) at \(answer["Keyway-Cursor"] ?? "?"), and then \(response.status) at "
          + "\(response["Keyway-Cursor"] ?? "?")")
    }
  }

  private func learn(_ request: RegisterRequest, _ response: WireResponse) {
    guard let cursor = Cursor(of: response) else { return }
    state.withLock { state in
      for part in request.parts {
        state.versions[part.register] = part.leaves.map { RegisterRequest.Version(value: $0, cursor: cursor) }
      }
    }
  }

  /// Reads a register: usually in a state as new as any that a client has seen, otherwise in whatever state the node
  /// has.
  private func read(on line: inout Line?) {
    guard connect(&line) else { return }
    let register = state.withLock { [registers] in registers.randomElement(using: &$0.random) } ?? ""
    let moment = chance(75) ? ledger.moment() : nil
    let newest = moment.flatMap { _ in ledger.newest }
    let request = WireRequest(
      "GET", "/v1/objects/Register/\(register)", newest.map { ["Keyway-Cursor": $0.description] } ?? [:])
    let (text, response) = exchange(request, on: &line)
    guard let response, response.status != 503 else { return }
    guard response.status == 200 || response.status == 404 else {
      return ledger.promises.violation("\(text) was answered \(response.status) \(response.text)")
    }
    let value = response.status == 200 ? response.json["value"].whole : nil
    ledger.read(register, value, text, at: moment, response)
    guard let value, let cursor = Cursor(of: response), let revision = response.json["@revision"].whole else { return }
    state.withLock {
      $0.versions[register] = RegisterRequest.Version(
        value: value, cursor: Cursor(epoch: cursor.epoch, revision: revision))
    }
  }

  /// Sends a request to the node of the line. Returns a description of the request, and its answer; nil if there was
  /// none, or none within `seconds` if those are given.
  private func exchange(
    _ request: WireRequest, within seconds: Double? = nil, on line: inout Line?
  ) -> (text: String, response: WireResponse?) {
    var request = request
    if request.headers["Keyway-Writer"] == nil { request.headers["Keyway-Writer"] = "writer-\(number)" }
    let conditions = ["If-Match", "If-None-Match", "Idempotency-Key", "Keyway-Cursor"]
      .compactMap { name in request.headers[name].map { "\(name): \($0)" } }
    let text =
      (["\(request.method) \(request.target)"] + conditions + [request.body ?? ""]).joined(separator: " ")
      + " by writer-\(number) at \(line.map { "node \($0.door.node)" } ?? "no node")"
    guard let used = line else { return (text, nil) }
    let mark = used.door.mark()
    do throws(LoopbackError) {
      let response = try used.connection.exchange(request, within: seconds)
      if let problem = used.door.take(response, since: mark) { ledger.promises.violation("\(text): \(problem)") }
      return (text, response)
    } catch {
      if error.isOfBrokenServer, seconds == nil || error.reason != .timedOut {
        ledger.promises.violation("\(text): \(error)")
      }
      line = nil
      return (text, nil)
    }
  }

  /// Connects to a node if there is no line yet, and now and then to another one. Returns false if that node is down.
  private func connect(_ line: inout Line?) -> Bool {
    if isWriter, line?.door.isForRefusals ?? false { line = nil }
    guard line == nil || chance(12) else { return true }
    let doors = doors.filter { !isWriter || !$0.isForRefusals }
    let door = state.withLock { doors.randomElement(using: &$0.random) }
    let connection = door.flatMap {
      try? WireConnection(SocketAddress(port: $0.port), timeoutSeconds: Self.patienceSeconds)
    }
    guard let door, let connection else {
      line = nil
      usleep(3000)
      return false
    }
    line = Line(door: door, connection: connection)
    return true
  }

  // MARK: Requests of the test itself

  /// Creates the objects. Returns the cursor after that.
  func found() -> Cursor? {
    var line = anyLine()
    let parts = RegisterSchema.steady.map {
      RegisterRequest.Part(register: $0, condition: .isState(nil), leaves: RegisterSchema.firstValue)
    }
    return carryOut(
      .transaction(parts, RegisterSchema.founding, RegisterSchema.firstValue, key: "founding"), on: &line)
  }

  /// Writes a register that every stream shows, as the last write of a round, under the writer's name that the streams
  /// wait for.
  func finish(as name: String) -> Cursor? {
    var line = anyLine()
    var request = RegisterRequest.transact(["s0"], nil, ledger.nextValue(), key: name)
    request.request.headers["Keyway-Writer"] = name
    return carryOut(request, on: &line)
  }

  /// Returns a line to any node that is up.
  private func anyLine() -> Line? {
    var line: Line?
    _ = Deadline(seconds: Self.patienceSeconds).awaits { connect(&line) }
    return line
  }
}

import Foundation
import Glibc
import Histogram
import Support
import TestKit

/// Sets values to numbered messages over a few connections, and measures how long the responses take.
///
/// Each connection has a thread and values of its own, so that the messages of one value arrive in the order of their
/// numbers, and awaits each response before its next message.
final class Publishers: Sendable {
  /// The messages to publish, and their rate.
  struct Plan: Sendable {
    /// The time at which the next message is due.
    enum Pace: Sendable {
      /// At a fixed rate of all connections together.
      case perSecond(Int)
      /// After a pause from the response to the last message.
      case pause(microseconds: Int)
    }

    var address: SocketAddress
    /// The key paths that are set.
    var paths: [String]
    /// The request that sets one of them to a message.
    var request: @Sendable (_ path: String, _ message: String) -> WireRequest = WireRequest.setting
    /// The seed of the random order in which the key paths are set; nil to set them in turn.
    var seed: UInt64?
    var connections = 1
    var pace: Pace
    var sizeBytes: Int
    /// The number of messages that each connection publishes, unless it is stopped before.
    var messages = Int.max
    /// The time limit for a response, in seconds.
    var timeoutSeconds: Double
  }

  /// The results of publishing.
  struct Outcome: Sendable {
    /// The number of messages with a response.
    var writes = 0
    /// The times from when each message was due to its response.
    var latency = Latency()
    /// The time from the first request to the last response, in seconds.
    var seconds = 0.0
  }

  private struct State {
    var running = 0
    var isStopped = false
    var failure: (any Error)?
    var histogram = Latency.histogram()
    var start: UInt64 = .max
    var end: UInt64 = 0
  }

  private let plan: Plan
  private let ledger: MessageLedger
  private let state = Locked(State())

  /// Creates publishers that note each message with a response in `ledger`.
  init(_ plan: Plan, _ ledger: MessageLedger) {
    self.plan = plan
    self.ledger = ledger
  }

  /// Starts the threads; each ends after its last message, at its first failure, or after `stop`.
  func start() {
    state.withLock { $0.running = plan.connections }
    for number in 0..<plan.connections {
      Thread.detachNewThread { [self] in
        var failure: (any Error)?
        do { try publish(number) } catch { failure = error }
        state.withLock {
          $0.running -= 1
          $0.failure = $0.failure ?? failure
        }
      }
    }
  }

  /// Stops publishing after the responses under way.
  func stop() { state.withLock { $0.isStopped = true } }

  /// Discards the response times measured so far.
  func measureAnew() { state.withLock { $0.histogram.reset() } }

  /// Returns true if any thread still runs. Throws the first failure.
  func isRunning() throws -> Bool {
    let (running, failure) = state.withLock { ($0.running, $0.failure) }
    if let failure { throw failure }
    return running > 0
  }

  /// The results so far.
  var outcome: Outcome {
    state.withLock {
      let seconds = $0.end > $0.start ? Double($0.end - $0.start) / 1e9 : 0
      return Outcome(writes: Int($0.histogram.totalCount), latency: Latency($0.histogram), seconds: seconds)
    }
  }

  private func publish(_ number: Int) throws {
    let connection = try WireConnection(plan.address, timeoutSeconds: plan.timeoutSeconds)
    let values = Array(stride(from: number, to: plan.paths.count, by: plan.connections))
    var interval: UInt64?
    if case .perSecond(let rate) = plan.pace { interval = UInt64(1_000_000_000 * plan.connections / rate) }
    // The connections start at evenly spaced times.
    var due = SystemClock.now() + (interval ?? 0) * UInt64(number) / UInt64(plan.connections)
    var last: UInt64 = 0
    var random = plan.seed.map { SplitMix64(seed: $0, part: UInt64(number)) }
    for turn in 0..<plan.messages {
      if state.withLock({ $0.isStopped }) { return }
      var start = SystemClock.now()
      if let interval {
        if start < due {
          usleep(UInt32((due - start) / 1000))
          start = SystemClock.now()
        } else {
          // The time that a message waits for the previous response counts.
          start = due
        }
        due += interval
      }
      let place = random?.next(upperBound: UInt(values.count)) ?? UInt(turn % values.count)
      let value = values[Int(place)]
      // Numbers increase strictly even if the clock is coarse: subscribers rely on it.
      last = max(SystemClock.now(), last + 1)
      try connection.must(plan.request(plan.paths[value], WireRequest.message(last, sizeBytes: plan.sizeBytes)))
      ledger.note(value, last)
      let end = SystemClock.now()
      state.withLock {
        $0.histogram.record((end - start) / 1000)
        $0.start = min($0.start, start)
        $0.end = end
      }
      if case .pause(let microseconds) = plan.pace, microseconds > 0 { usleep(UInt32(microseconds)) }
    }
  }
}

/// The messages that were published to each value.
final class MessageLedger: Sendable {
  /// The counts of a ledger.
  struct Page: Sendable {
    /// The number of messages that each value was set to.
    var published: [Int]
    /// The number of the message that each value was set to last.
    var last: [UInt64]

    /// The total number of messages.
    var total: Int { published.reduce(0, +) }
  }

  private let page: Locked<Page>

  /// Creates a ledger of a number of values.
  init(values: Int) {
    page = Locked(Page(published: Array(repeating: 0, count: values), last: Array(repeating: 0, count: values)))
  }

  /// The present counts.
  var current: Page { page.withLock { $0 } }

  /// Notes that a value was set to a message.
  func note(_ value: Int, _ number: UInt64) {
    page.withLock {
      $0.published[value] += 1
      $0.last[value] = number
    }
  }
}

/// The requests of load generators.
extension WireRequest {
  /// Returns a request for a stream: of the changes from now on, or after the event with an id.
  static func subscription(_ target: String, after id: [UInt8] = []) -> WireRequest {
    var request = WireRequest("GET", target, ["Accept": "text/event-stream"])
    if !id.isEmpty { request.headers["Last-Event-ID"] = String(decoding: id, as: UTF8.self) }
    return request
  }

  /// Returns a request that sets a key path, or creates an object.
  static func setting(_ path: String, _ json: String) -> WireRequest { WireRequest("PUT", path, body: json) }

  /// Returns a request that sets one key path of many objects to the same value, in one transaction.
  static func transaction(setting keyPath: String, of objects: [String], _ json: String) -> WireRequest {
    let operations = objects.map { #"{"op":"set","object":"\#($0)","keyPath":"\#(keyPath)","value":\#(json)}"# }
    return transaction(operations)
  }

  /// Returns a transaction of operations, each given as JSON.
  static func transaction(_ operations: [String], _ headers: [String: String] = [:]) -> WireRequest {
    WireRequest(
      "POST", "/v1/transactions", headers, body: #"{"operations":[\#(operations.joined(separator: ","))]}"#)
  }

  /// Returns the message with a number as JSON, of about `sizeBytes` bytes, which a `MessageScanner` finds in a stream.
  static func message(_ number: UInt64, sizeBytes: Int) -> String {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, MessageScanner.digitCount - digits.count))
    let mark = "@@\(zeros)\(digits)@"
    return "\"\(mark)\(String(repeating: "x", count: max(0, sizeBytes - mark.utf8.count)))\""
  }
}

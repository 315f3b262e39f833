import Glibc
import Histogram
import TestKit

/// A closed-loop load generator: connections on one thread's epoll set, each of which sends its next request when it
/// has the answer to the last.
///
/// Like an audience it is to cost as little as it can: one `send` and one `read` for each request, nothing allocated
/// for it, and one look at the clock for each answer.
struct ClosedLoop: ~Copyable {
  /// Connections that do the same.
  struct Lane {
    /// What errors call the server.
    var name: String
    /// Where the server is.
    var address: SocketAddress
    /// How many there are.
    var connections: Int
    /// What they send, shared out among them: no two connections send the same one while there are enough.
    var requests: [NumberedRequest]
    /// How long the body of a good answer is, where the status alone does not show that it is good.
    var answerBytes: Int?
  }

  /// How long an answer may take.
  static let answerSeconds = 15
  private static let bufferBytes = 64 << 10

  private struct Member {
    var lane: Int
    var descriptor: Int32
    /// The first of its requests, and the one that is sent next.
    var first: Int
    var next: Int
    var sent: UInt64 = 0
    var isWaiting = false
    var scanner = AnswerScanner()
  }

  private let epoll: Epoll
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var lanes: [Lane]
  private var members: [Member]
  private var ready: [Int] = []
  private var number: UInt64 = 0
  private var waiting = 0

  /// Connects all.
  init(_ lanes: [Lane]) throws {
    // Nothing noncopyable may be half there.
    let epoll = try Epoll()
    var members: [Member] = []
    do {
      for (lane, plan) in lanes.enumerated() {
        for connection in 0..<plan.connections {
          let first = connection % plan.requests.count
          let descriptor = try plan.address.connect()
          members.append(Member(lane: lane, descriptor: descriptor, first: first, next: first))
          try epoll.addForReading(descriptor, index: members.count - 1)
        }
      }
    } catch {
      for member in members { close(member.descriptor) }
      throw error
    }
    self.epoll = epoll
    self.lanes = lanes
    self.members = members
    buffer = .allocate(capacity: Self.bufferBytes)
  }

  deinit {
    for member in members { close(member.descriptor) }
    buffer.deallocate()
  }

  /// Sends for so long, waits for the last answers, and gives how many came to each lane after the warm-up and how long
  /// they took, without what that took of the cores. Every answer has to be a 2xx.
  mutating func run(warmUpSeconds: Double, seconds: Double) throws -> [DurableReport.Load] {
    let start = MonotonicClock.now()
    let counted = start + UInt64(warmUpSeconds * 1e9)
    let end = counted + UInt64(seconds * 1e9)
    var histograms = lanes.map { _ in Latency.histogram() }
    // Other runs wrote other numbers.
    number = start / 1000
    for index in members.indices { try send(index, at: MonotonicClock.now()) }
    var last = start
    while waiting > 0 {
      try wait()
      for index in ready {
        guard try read(index) else { continue }
        last = MonotonicClock.now()
        if last >= counted, last < end {
          histograms[members[index].lane].record((last - members[index].sent) / 1000)
        }
        if last < end { try send(index, at: last) }
      }
      guard !Task.isCancelled else { throw LoopbackError(.interrupted) }
      if ready.isEmpty {
        guard MonotonicClock.now() - last < UInt64(Self.answerSeconds) * 1_000_000_000 else {
          throw LoopbackError("\(waiting) requests were not answered in \(Self.answerSeconds) s")
        }
      }
    }
    return histograms.map {
      DurableReport.Load(perSecond: Double($0.totalCount) / max(seconds, 1e-9), latency: Latency($0))
    }
  }

  private mutating func wait() throws {
    var ready = ready
    self.ready = []
    ready.removeAll(keepingCapacity: true)
    try epoll.wait(milliseconds: 200) { ready.append($0) }
    self.ready = ready
  }

  private mutating func send(_ index: Int, at now: UInt64) throws {
    let (lane, request) = (members[index].lane, members[index].next)
    number += 1
    lanes[lane].requests[request].set(number)
    let descriptor = members[index].descriptor
    let bytes = lanes[lane].requests[request].bytes
    // So few bytes always fit into a socket buffer that the last answer shows to be empty.
    let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    guard count == bytes.count else { throw LoopbackError(call: "send to \(lanes[lane].name)") }
    members[index].sent = now
    members[index].isWaiting = true
    waiting += 1
    let next = request + lanes[lane].connections
    members[index].next = next < lanes[lane].requests.count ? next : members[index].first
  }

  /// Whether the connection has its answer.
  private mutating func read(_ index: Int) throws -> Bool {
    let name = lanes[members[index].lane].name
    let count = recv(members[index].descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EINTR { return false }
      throw LoopbackError("\(name) closed a connection")
    }
    guard members[index].isWaiting else { throw LoopbackError("\(name) answered without a request") }
    let outcome = members[index].scanner.take(UnsafeBufferPointer(rebasing: buffer[..<count]))
    if case .unfinished = outcome { return false }
    guard case .answer(let status, let bodyBytes) = outcome, (200..<300).contains(status),
      lanes[members[index].lane].answerBytes.map({ $0 == bodyBytes }) ?? true
    else { throw LoopbackError("\(name) answered: \(String(decoding: buffer[..<min(count, 1000)], as: UTF8.self))") }
    members[index].isWaiting = false
    waiting -= 1
    return true
  }
}

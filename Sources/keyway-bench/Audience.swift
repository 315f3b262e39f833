import Glibc
import Histogram
import Support
import TestKit

/// The subscribers of a benchmark, all on one thread's epoll set.
///
/// It is to cost as little as it can, because it runs on the cores of the server that is measured: one `read` for each
/// ready socket into one buffer, one look at the clock for each read, nothing allocated for a delivery.
struct Audience: ~Copyable {
  /// One subscriber before it is connected.
  struct Seat {
    /// What it asks for: a path and its query.
    var target: String
    /// What the kernel keeps for it that it has not read; nil for what the kernel chooses.
    var receiveBufferBytes: Int32?
    /// Whether it counts the changes that stand for others.
    var countsCoalesced = false
    /// Whether it keeps the id to resume from.
    var keepsID = false

    /// One that subscribes to the new values of a key path.
    static func observing(
      _ path: String, receiveBufferBytes: Int32? = nil, countsCoalesced: Bool = false, keepsID: Bool = false
    ) -> Seat {
      Seat(
        target: path + "?options=new", receiveBufferBytes: receiveBufferBytes, countsCoalesced: countsCoalesced,
        keepsID: keepsID)
    }
  }

  /// Takes the index of a subscriber, the numbers of the messages that came to it, and when.
  typealias Receiver = (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void

  /// How long doubles are waited for behind the last delivery: a message is known by its beginning.
  static let settleSeconds = 0.2
  /// How many connections are under way at once: fewer than a listen queue takes.
  private static let maximumOpening = 128
  /// How long all subscribers may take to connect.
  private static let connectSeconds = 60
  private static let bufferBytes = 256 << 10

  private let address: SocketAddress
  private let seats: [Seat]
  private let epoll: Epoll
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var descriptors: [Int32] = []
  private var numbers: [UInt64] = []
  private var ready: [Int] = []
  private var openCount = 0
  /// The subscribers, in the order of their seats.
  private(set) var subscribers: [Subscriber]
  /// How many are no longer connected.
  private(set) var closedCount = 0

  /// An audience that is not connected yet.
  init(_ address: SocketAddress, _ seats: [Seat]) throws {
    epoll = try Epoll()
    self.address = address
    self.seats = seats
    subscribers = seats.map { seat in
      var subscriber = Subscriber()
      if seat.countsCoalesced { subscriber.coalesced = CoalescedScanner() }
      if seat.keepsID { subscriber.ids = EventIDScanner() }
      return subscriber
    }
    buffer = .allocate(capacity: Self.bufferBytes)
  }

  deinit {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    buffer.deallocate()
  }

  /// Connects all that are not connected, so many at once, from the last id where they keep it; returns when all have
  /// been answered.
  mutating func connect(atOnce: Int = maximumOpening, receive: Receiver = { _, _, _ in }) throws {
    try Self.raiseDescriptorLimit(to: seats.count + 64)
    let deadline = Deadline(seconds: Double(Self.connectSeconds))
    while openCount < seats.count {
      while descriptors.count < seats.count, descriptors.count - openCount < atOnce {
        let seat = seats[descriptors.count]
        let descriptor = try address.connect(isBlocking: false, receiveBufferBytes: seat.receiveBufferBytes)
        descriptors.append(descriptor)
        try epoll.addForWriting(descriptor, index: descriptors.count - 1)
      }
      try wait(milliseconds: 200)
      for index in ready where subscribers[index].isOpen { try read(index, receive: receive) }
      for index in ready where !subscribers[index].isOpen { try advance(index, receive: receive) }
      guard !deadline.hasPassed else {
        throw LoopbackError("only \(openCount) of \(seats.count) subscribers were served in \(Self.connectSeconds) s")
      }
    }
  }

  /// Cuts all connections.
  mutating func cut() {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    for index in subscribers.indices { subscribers[index].disconnect() }
    descriptors = []
    openCount = 0
  }

  /// Nothing with a number up to `number` counts as a delivery any more: it is of an earlier run.
  mutating func expectNumbers(above number: UInt64) {
    for index in subscribers.indices { subscribers[index].expectNumbers(above: number) }
  }

  /// A subscriber reads nothing from now on.
  func pause(_ index: Int) throws {
    guard descriptors[index] >= 0 else { return }
    try epoll.remove(descriptors[index], index: index)
  }

  /// A subscriber that was paused reads again.
  func resume(_ index: Int) throws {
    guard descriptors[index] >= 0 else { return }
    try epoll.addForReading(descriptors[index], index: index)
  }

  /// Reads what there is, after at most so long.
  mutating func pump(milliseconds: Int32, receive: Receiver) throws {
    try wait(milliseconds: milliseconds)
    for index in ready { try read(index, receive: receive) }
  }

  /// Reads for so many seconds.
  mutating func pump(seconds: Double, receive: Receiver = { _, _, _ in }) throws {
    let deadline = Deadline(seconds: seconds)
    while !deadline.hasPassed { try pump(milliseconds: min(20, deadline.remainingMilliseconds), receive: receive) }
  }

  private mutating func wait(milliseconds: Int32) throws {
    var ready = ready
    self.ready = []
    ready.removeAll(keepingCapacity: true)
    try epoll.wait(milliseconds: milliseconds) { ready.append($0) }
    self.ready = ready
  }

  /// Sends the request of a subscriber that has just been connected, or reads what there is.
  private mutating func advance(_ index: Int, receive: Receiver) throws {
    guard subscribers[index].hasAsked else {
      var code: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      getsockopt(descriptors[index], SOL_SOCKET, SO_ERROR, &code, &length)
      guard code == 0 else {
        throw LoopbackError("connect to \(address.hostField): \(String(cString: strerror(code)))")
      }
      let request = WireRequest.subscription(seats[index].target, after: subscribers[index].ids?.last ?? [])
      let bytes = Array(request.text(to: address).utf8)
      // So few bytes always fit into an empty socket buffer.
      let count = bytes.withUnsafeBytes {
        send(descriptors[index], $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count == bytes.count else { throw LoopbackError(call: "subscribe") }
      subscribers[index].hasAsked = true
      return try epoll.waitForReading(descriptors[index], index: index)
    }
    let wasOpen = subscribers[index].isOpen
    try read(index, receive: receive)
    if !wasOpen, subscribers[index].isOpen { openCount += 1 }
    guard descriptors[index] >= 0 else { throw LoopbackError("the server closed a subscriber's connection early") }
  }

  private mutating func read(_ index: Int, receive: Receiver) throws {
    let count = Glibc.read(descriptors[index], buffer.baseAddress, buffer.count)
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      return drop(index)
    }
    let now = SystemClock.now()
    do throws(Subscriber.Failure) {
      try subscribers[index].take(UnsafeBufferPointer(rebasing: buffer[..<count]), into: &numbers)
    } catch {
      throw LoopbackError("a subscriber's response is wrong: \(error)")
    }
    receive(index, numbers, now)
    numbers.removeAll(keepingCapacity: true)
    if subscribers[index].isAtEnd { drop(index) }
  }

  /// Closing takes the descriptor out of the epoll set too.
  private mutating func drop(_ index: Int) {
    close(descriptors[index])
    descriptors[index] = -1
    closedCount += 1
  }

  private static func raiseDescriptorLimit(to count: Int) throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_cur >= UInt(count) else {
      throw LoopbackError("\(count) descriptors are needed and \(limit.rlim_cur) allowed (ulimit -n)")
    }
  }
}

/// Counts and times deliveries. A class, so that a look at it copies nothing: it is written for every delivery.
final class DeliveryTally {
  /// How many there were.
  private(set) var delivered = 0
  private var histogram = Latency.histogram()
  private var ofSecond = Latency.histogram()
  private var secondEnd: UInt64 = 0
  private var p99OfSeconds: [Int64] = []

  /// How long they took.
  var latency: Latency { Latency(histogram) }

  /// The median of the 99th percentiles of each whole second: what a single bad second of a busy machine does not move.
  var typicalP99: Int64 { p99OfSeconds.median ?? latency.p99 }

  /// Takes in the numbers of messages that came at one moment.
  func count(_ numbers: [UInt64], at now: UInt64) {
    if now >= secondEnd { beginSecond(at: now) }
    for number in numbers {
      histogram.record((now - number) / 1000)
      ofSecond.record((now - number) / 1000)
    }
    delivered += numbers.count
  }

  private func beginSecond(at now: UInt64) {
    if secondEnd > 0 { p99OfSeconds.append(Latency(ofSecond).p99) }
    ofSecond.reset()
    secondEnd = now + 1_000_000_000
  }
}

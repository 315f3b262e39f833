import Glibc
import Histogram
import Support
import TestKit

/// The subscribers of a benchmark, all on one thread's epoll set.
///
/// It must cost as little as possible, because it runs on the cores of the server that is measured: one `read` for each
/// ready socket into one buffer, one reading of the clock for each `read`, and no allocation for a delivery.
struct Audience: ~Copyable {
  /// The parameters of one subscriber.
  struct Seat {
    /// The target of its request: a path and a query.
    var target: String
    /// The size of its kernel receive buffer, in bytes; nil for the kernel's default.
    var receiveBufferBytes: Int32?
    /// True if it counts the changes that stand for others.
    var countsCoalesced = false
    /// True if it keeps the id to resume from.
    var keepsID = false

    /// Returns a subscriber to the new values of a key path.
    static func observing(
      _ path: String, receiveBufferBytes: Int32? = nil, countsCoalesced: Bool = false, keepsID: Bool = false
    ) -> Seat {
      Seat(
        target: path + "?options=new", receiveBufferBytes: receiveBufferBytes, countsCoalesced: countsCoalesced,
        keepsID: keepsID)
    }
  }

  /// Receives the index of a subscriber, the numbers of the messages that it received, and the time.
  typealias Receiver = (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void

  /// The time to wait for duplicates after the last delivery, in seconds: a message is counted when its beginning
  /// arrives.
  static let settleSeconds = 0.2
  /// The maximum number of connection attempts at the same time: fewer than a listen queue holds.
  private static let maximumOpening = 128
  /// The time limit for connecting all subscribers, in seconds.
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
  /// The number of subscribers that were disconnected.
  private(set) var closedCount = 0

  /// Creates an audience that is not connected.
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

  /// Connects all subscribers that are not connected, at most `atOnce` at the same time, resuming from the last id if
  /// they keep it. Returns when all have been answered.
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

  /// Closes all connections.
  mutating func cut() {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    for index in subscribers.indices { subscribers[index].disconnect() }
    descriptors = []
    openCount = 0
  }

  /// Excludes messages with a number up to `number` from the deliveries: they belong to an earlier run.
  mutating func expectNumbers(above number: UInt64) {
    for index in subscribers.indices { subscribers[index].expectNumbers(above: number) }
  }

  /// Makes a subscriber stop reading.
  func pause(_ index: Int) throws {
    guard descriptors[index] >= 0 else { return }
    try epoll.remove(descriptors[index], index: index)
  }

  /// Makes a paused subscriber read again.
  func resume(_ index: Int) throws {
    guard descriptors[index] >= 0 else { return }
    try epoll.addForReading(descriptors[index], index: index)
  }

  /// Waits for at most `milliseconds`, and reads from the sockets that are ready.
  mutating func pump(milliseconds: Int32, receive: Receiver) throws {
    try wait(milliseconds: milliseconds)
    for index in ready { try read(index, receive: receive) }
  }

  /// Reads for a number of seconds.
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

  /// Sends the request of a subscriber that has just connected, or reads from its socket.
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
      // The request is so short that it always fits into an empty socket buffer.
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

  /// Closes a connection, which also removes the descriptor from the epoll set.
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
      throw LoopbackError("\(count) descriptors are needed, but only \(limit.rlim_cur) are allowed (ulimit -n)")
    }
  }
}

/// The count and the times of deliveries. A class, so that reading it copies nothing: it is updated for every delivery.
final class DeliveryTally {
  /// The number of deliveries.
  private(set) var delivered = 0
  private var histogram = Latency.histogram()
  private var ofSecond = Latency.histogram()
  private var secondEnd: UInt64 = 0
  private var p99OfSeconds: [Int64] = []

  /// The times from publication to delivery.
  var latency: Latency { Latency(histogram) }

  /// The median of the 99th percentiles of each whole second, which a single bad second of a busy machine does not
  /// change.
  var typicalP99: Int64 { p99OfSeconds.median ?? latency.p99 }

  /// Counts messages that arrived at the same time.
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

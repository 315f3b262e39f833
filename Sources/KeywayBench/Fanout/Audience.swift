import Glibc

/// The subscribers of a benchmark, all on one thread's epoll set.
///
/// It is to cost as little as it can, because it runs on the cores of the server that is measured: one `read` for each
/// ready socket into one buffer, one look at the clock for each read, nothing allocated for a delivery.
struct Audience: ~Copyable {
  /// One subscriber before it has come.
  struct Seat {
    /// What it asks for.
    var request: [UInt8]
    /// What the kernel may keep that it has not read; nil for what it likes.
    var receiveBufferBytes: Int32?
    /// Whether it counts what it is told merged.
    var countsCoalesced = false
    /// Whether it keeps the ID to go on from.
    var keepsID = false
  }

  /// How many connections may be under way at once: less than a listen queue takes.
  static let maximumOpening = 128
  /// How long all subscribers may take to connect.
  static let connectSeconds = 60
  private static let bufferBytes = 256 << 10

  private let address: SocketAddress
  private let epoll: Epoll
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var descriptors: [Int32] = []
  private var numbers: [UInt64] = []
  private var ready: [Int] = []
  private var openCount = 0
  /// The subscribers, in the order of their seats.
  private(set) var subscribers: [FanoutSubscriber] = []
  /// How many are no longer connected.
  private(set) var closedCount = 0

  init(_ address: SocketAddress) throws(FanoutError) {
    self.address = address
    epoll = try Epoll()
    buffer = .allocate(capacity: Self.bufferBytes)
  }

  deinit {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    buffer.deallocate()
  }

  /// Connects everybody, and returns when all have been answered.
  mutating func open(_ seats: [Seat]) throws(FanoutError) {
    try Self.raiseDescriptorLimit(to: seats.count + 64)
    let deadline = MonotonicClock.now() + UInt64(Self.connectSeconds) * 1_000_000_000
    while openCount < seats.count {
      while descriptors.count < seats.count, descriptors.count - openCount < Self.maximumOpening {
        let seat = seats[descriptors.count]
        let descriptor = try address.connect(isBlocking: false, receiveBufferBytes: seat.receiveBufferBytes)
        descriptors.append(descriptor)
        var subscriber = FanoutSubscriber()
        if seat.countsCoalesced { subscriber.coalesced = CoalescedScanner() }
        if seat.keepsID { subscriber.ids = EventIDScanner() }
        subscribers.append(subscriber)
        try epoll.addForWriting(descriptor, index: descriptors.count - 1)
      }
      try wait(milliseconds: 200)
      for index in ready { try advance(index, request: seats[index].request) { _, _, _ in } }
      guard MonotonicClock.now() < deadline else {
        throw FanoutError("only \(openCount) of \(seats.count) subscribers were served in \(Self.connectSeconds) s")
      }
    }
  }

  /// Cuts all connections.
  mutating func cut() {
    for index in descriptors.indices where descriptors[index] >= 0 { close(descriptors[index]) }
    for index in subscribers.indices { subscribers[index].disconnect() }
    descriptors = []
    openCount = 0
  }

  /// Connects everybody again who was cut, so many at once, each with the request of its index; returns when all have
  /// been answered. `receive` is as for `pump`.
  mutating func reopen(
    atOnce: Int, _ request: (_ index: Int, borrowing FanoutSubscriber) -> [UInt8],
    receive: (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void
  ) throws(FanoutError) {
    let deadline = MonotonicClock.now() + UInt64(Self.connectSeconds) * 1_000_000_000
    while openCount < subscribers.count {
      while descriptors.count < subscribers.count, descriptors.count - openCount < atOnce {
        descriptors.append(try address.connect(isBlocking: false))
        try epoll.addForWriting(descriptors[descriptors.count - 1], index: descriptors.count - 1)
      }
      try wait(milliseconds: 200)
      for index in ready where subscribers[index].isOpen { try read(index, receive: receive) }
      for index in ready where !subscribers[index].isOpen {
        try advance(
          index, request: subscribers[index].hasAsked ? [] : request(index, subscribers[index]), receive: receive)
      }
      guard MonotonicClock.now() < deadline else {
        throw FanoutError("only \(openCount) of \(subscribers.count) were served again in \(Self.connectSeconds) s")
      }
    }
  }

  /// Nothing with a number up to `number` counts as a delivery any more: it is of an earlier run.
  mutating func expectNumbers(above number: UInt64) {
    for index in subscribers.indices { subscribers[index].expectNumbers(above: number) }
  }

  /// A subscriber reads nothing from now on.
  func pause(_ index: Int) throws(FanoutError) {
    guard descriptors[index] >= 0 else { return }
    try epoll.remove(descriptors[index], index: index)
  }

  /// A subscriber that was paused reads again.
  func resume(_ index: Int) throws(FanoutError) {
    guard descriptors[index] >= 0 else { return }
    try epoll.addForReading(descriptors[index], index: index)
  }

  /// Reads what there is, after at most so long; gives `receive` the subscriber, the numbers of the messages that came
  /// to it, and when.
  mutating func pump(
    milliseconds: Int32, receive: (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void
  ) throws(FanoutError) {
    try wait(milliseconds: milliseconds)
    for index in ready { try read(index, receive: receive) }
  }

  private mutating func wait(milliseconds: Int32) throws(FanoutError) {
    var ready = ready
    self.ready = []
    ready.removeAll(keepingCapacity: true)
    try epoll.wait(milliseconds: milliseconds) { ready.append($0) }
    self.ready = ready
  }

  /// Sends the request of a subscriber that has just been connected, or reads what there is.
  private mutating func advance(
    _ index: Int, request: [UInt8], receive: (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void
  ) throws(FanoutError) {
    guard subscribers[index].hasAsked else {
      var code: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      getsockopt(descriptors[index], SOL_SOCKET, SO_ERROR, &code, &length)
      guard code == 0 else {
        throw FanoutError("connect to \(address.hostField): \(String(cString: strerror(code)))")
      }
      // So few bytes always fit into an empty socket buffer.
      let count = request.withUnsafeBytes {
        send(descriptors[index], $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count == request.count else { throw FanoutError(call: "subscribe") }
      subscribers[index].hasAsked = true
      return try epoll.waitForReading(descriptors[index], index: index)
    }
    let wasOpen = subscribers[index].isOpen
    try read(index, receive: receive)
    if !wasOpen, subscribers[index].isOpen { openCount += 1 }
    guard descriptors[index] >= 0 else { throw FanoutError("the server closed a subscriber's connection early") }
  }

  private mutating func read(
    _ index: Int, receive: (_ index: Int, _ numbers: [UInt64], _ now: UInt64) -> Void
  ) throws(FanoutError) {
    let count = Glibc.read(descriptors[index], buffer.baseAddress, buffer.count)
    guard count > 0 else {
      if count < 0, errno == EAGAIN || errno == EINTR { return }
      return drop(index)
    }
    let now = MonotonicClock.now()
    do throws(FanoutSubscriber.Failure) {
      try subscribers[index].take(UnsafeBufferPointer(rebasing: buffer[..<count]), into: &numbers)
    } catch {
      throw FanoutError("a subscriber was answered wrongly: \(error)")
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

  private static func raiseDescriptorLimit(to count: Int) throws(FanoutError) {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    guard limit.rlim_cur >= UInt(count) else {
      throw FanoutError("\(count) descriptors are needed and \(limit.rlim_cur) allowed (ulimit -n)")
    }
  }
}

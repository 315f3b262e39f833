internal import Glibc
internal import Histogram

/// One fan-out benchmark: all subscribers on this thread's epoll set, the publisher on a thread of its own.
///
/// It is to cost as little as it can, because it runs on the cores of the server that it measures: one `read` for each
/// ready socket into one buffer, one look at the clock for each read, nothing allocated for a delivery.
struct FanoutRun: ~Copyable {
  /// How many connections may be under way at once: less than a listen queue takes.
  static let maximumOpening = 128
  /// How long all subscribers may take to connect.
  static let connectSeconds = 60
  /// How long doubles are waited for behind the last delivery.
  static let settleMilliseconds: Int32 = 200
  private static let bufferBytes = 256 << 10

  private let plan: FanoutPlan
  private let epoll: Epoll
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private var descriptors: [Int32] = []
  private var subscribers: [FanoutSubscriber] = []
  private var openCount = 0
  private var closedCount = 0
  private var delivered = 0
  private var numbers: [UInt64] = []
  private var histogram = FanoutLatency.histogram()

  init(_ plan: FanoutPlan) throws(FanoutError) {
    self.plan = plan
    epoll = try Epoll()
    buffer = .allocate(capacity: Self.bufferBytes)
  }

  deinit {
    for descriptor in descriptors where descriptor >= 0 { close(descriptor) }
    buffer.deallocate()
  }

  /// Runs the benchmark to its end, or to the first thing that makes its figures worthless.
  mutating func run() throws(FanoutError) -> FanoutReport {
    try Self.raiseDescriptorLimit(to: plan.subscribers + 64)
    var report = FanoutReport(subscribers: plan.subscribers, messages: plan.messages)
    let before = try figures()
    let start = MonotonicClock.now()
    try open()
    report.connectSeconds = Self.seconds(from: start, to: MonotonicClock.now())
    try rest(milliseconds: 300)
    let connected = try figures()
    report.residentBytesGrown = connected.flatMap { after in before.map { after.residentBytes - $0.residentBytes } }
    try rest(milliseconds: plan.idleSeconds * 1000)
    try deliver(into: &report)
    let after = try figures()
    report.cpuSeconds = after.flatMap { after in connected.map { after.cpuSeconds - $0.cpuSeconds } }
    return report
  }

  private func figures() throws(FanoutError) -> ProcessFigures? {
    guard let pid = plan.serverPID else { return nil }
    return try ProcessFigures(pid: pid)
  }

  // MARK: Opening

  private mutating func open() throws(FanoutError) {
    let request = plan.subscription
    let deadline = MonotonicClock.now() + UInt64(Self.connectSeconds) * 1_000_000_000
    while openCount < plan.subscribers {
      while descriptors.count < plan.subscribers, descriptors.count - openCount < Self.maximumOpening {
        let descriptor = try plan.address.connect(isBlocking: false)
        descriptors.append(descriptor)
        subscribers.append(FanoutSubscriber())
        try epoll.addForWriting(descriptor, index: descriptors.count - 1)
      }
      var ready: [Int] = []
      try epoll.wait(milliseconds: 200) { ready.append($0) }
      for index in ready { try advance(index, request: request) }
      guard MonotonicClock.now() < deadline else {
        throw FanoutError(
          "only \(openCount) of \(plan.subscribers) subscribers were served in \(Self.connectSeconds) s")
      }
    }
  }

  /// Sends the request of a subscriber that has just been connected, or reads what there is.
  private mutating func advance(_ index: Int, request: [UInt8]) throws(FanoutError) {
    guard subscribers[index].hasAsked else {
      var code: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      getsockopt(descriptors[index], SOL_SOCKET, SO_ERROR, &code, &length)
      guard code == 0 else {
        throw FanoutError("connect to \(plan.address.hostField): \(String(cString: strerror(code)))")
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
    try receive(index)
    if !wasOpen, subscribers[index].isOpen { openCount += 1 }
    guard descriptors[index] >= 0 else { throw FanoutError("the server closed a subscriber's connection early") }
  }

  // MARK: Delivering

  private mutating func deliver(into report: inout FanoutReport) throws(FanoutError) {
    let publisher = FanoutPublisher(plan)
    defer { publisher.stop() }
    let start = MonotonicClock.now()
    for index in subscribers.indices { subscribers[index].expectNumbers(above: start) }
    publisher.start()
    let end = try readAll(publisher)
    try rest(milliseconds: Int(Self.settleMilliseconds))
    let progress = publisher.progress
    if let failure = progress.failure { throw failure }
    report.delivered = delivered
    report.doubled = subscribers.reduce(0) { $0 + $1.doubled }
    report.outOfOrder = subscribers.reduce(0) { $0 + $1.outOfOrder }
    report.missing = subscribers.reduce(0) { $0 + max(0, plan.messages - $1.delivered - $1.outOfOrder) }
    // More than all messages in growing order: something that nobody published.
    report.doubled += subscribers.reduce(0) { $0 + max(0, $1.delivered - plan.messages) }
    report.closed = closedCount
    report.deliverySeconds = Self.seconds(from: progress.startNanoseconds, to: end)
    report.publishSeconds = Self.seconds(from: progress.startNanoseconds, to: progress.endNanoseconds)
    report.published = progress.published
    report.latency = FanoutLatency(histogram)
  }

  /// Reads until everything is delivered, the publisher fails, or nothing has happened for the stall time; gives the
  /// moment of the last delivery.
  private mutating func readAll(_ publisher: FanoutPublisher) throws(FanoutError) -> UInt64 {
    let wanted = plan.subscribers * plan.messages
    let stall = UInt64(plan.stallSeconds) * 1_000_000_000
    var last = (delivered: 0, published: 0, moment: MonotonicClock.now())
    var lastDelivery = last.moment
    while delivered < wanted, closedCount < plan.subscribers {
      try pump(milliseconds: 200)
      let now = MonotonicClock.now()
      if delivered != last.delivered { lastDelivery = now }
      // The lock is the publisher's too: only now and then.
      let isIdle = delivered == last.delivered
      let progress = isIdle ? publisher.progress : nil
      if progress?.failure != nil { break }
      let published = progress?.published ?? last.published
      if !isIdle || published != last.published {
        last = (delivered, published, now)
      } else if now - last.moment > stall {
        break
      }
    }
    // The publisher still waits for its last answer when the last delivery is faster.
    let deadline = MonotonicClock.now() + stall
    while !publisher.progress.isDone, MonotonicClock.now() < deadline { try pump(milliseconds: 10) }
    return lastDelivery
  }

  private mutating func pump(milliseconds: Int32) throws(FanoutError) {
    var ready: [Int] = []
    ready.reserveCapacity(512)
    try epoll.wait(milliseconds: milliseconds) { ready.append($0) }
    for index in ready { try receive(index) }
  }

  private mutating func rest(milliseconds: Int) throws(FanoutError) {
    let end = MonotonicClock.now() + UInt64(milliseconds) * 1_000_000
    while case let now = MonotonicClock.now(), now < end {
      try pump(milliseconds: Int32(min((end - now) / 1_000_000 + 1, 200)))
    }
  }

  private mutating func receive(_ index: Int) throws(FanoutError) {
    let count = read(descriptors[index], buffer.baseAddress, buffer.count)
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
    for number in numbers { histogram.record((now - number) / 1000) }
    delivered += numbers.count
    numbers.removeAll(keepingCapacity: true)
    if subscribers[index].isAtEnd { drop(index) }
  }

  /// Closing takes the descriptor out of the epoll set too.
  private mutating func drop(_ index: Int) {
    close(descriptors[index])
    descriptors[index] = -1
    closedCount += 1
  }

  private static func seconds(from start: UInt64, to end: UInt64) -> Double {
    end > start ? Double(end - start) / 1e9 : 0
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

import CLinux
import Glibc

/// A set of descriptors that wait for events (epoll(7)), each with an index that the caller chooses.
package struct Epoll: ~Copyable {
  private let descriptor: Int32
  private let events: UnsafeMutableBufferPointer<epoll_event>

  /// Creates an empty set that reports at most `capacity` events at a time.
  package init(capacity: Int = 512) throws(LoopbackError) {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else { throw LoopbackError(call: "epoll_create1") }
    events = .allocate(capacity: capacity)
    events.initialize(repeating: epoll_event())
  }

  deinit {
    events.deallocate()
    close(descriptor)
  }

  /// Adds a descriptor that waits until it is writable, that is, connected.
  package func addForWriting(_ descriptor: Int32, index: Int) throws(LoopbackError) {
    try control(EPOLL_CTL_ADD, descriptor, EPOLLOUT.rawValue, index)
  }

  /// Makes the descriptor wait for something to read.
  package func waitForReading(_ descriptor: Int32, index: Int) throws(LoopbackError) {
    try control(EPOLL_CTL_MOD, descriptor, EPOLLIN.rawValue, index)
  }

  /// Adds a descriptor that waits for something to read.
  package func addForReading(_ descriptor: Int32, index: Int) throws(LoopbackError) {
    try control(EPOLL_CTL_ADD, descriptor, EPOLLIN.rawValue, index)
  }

  /// Removes a descriptor; its events are no longer reported.
  package func remove(_ descriptor: Int32, index: Int) throws(LoopbackError) {
    try control(EPOLL_CTL_DEL, descriptor, 0, index)
  }

  /// Waits for events for at most `milliseconds`, and calls `ready` with the index of each descriptor that has one.
  package func wait(milliseconds: Int32, ready: (Int) throws(LoopbackError) -> Void) throws(LoopbackError) {
    let count = epoll_wait(descriptor, events.baseAddress, Int32(events.count), milliseconds)
    guard count >= 0 else {
      if errno == EINTR { return }
      throw LoopbackError(call: "epoll_wait")
    }
    for index in 0..<Int(count) { try ready(Int(events[index].data.u64)) }
  }

  private func control(_ operation: Int32, _ target: Int32, _ mask: UInt32, _ index: Int) throws(LoopbackError) {
    var event = epoll_event()
    event.events = mask
    event.data.u64 = UInt64(index)
    guard epoll_ctl(descriptor, operation, target, &event) == 0 else { throw LoopbackError(call: "epoll_ctl") }
  }
}

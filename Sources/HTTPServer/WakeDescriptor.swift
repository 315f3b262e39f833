import CLinux
import Glibc

/// An eventfd: one thread waits for it, alone or in an epoll set, and any other thread wakes it.
package final class WakeDescriptor: Sendable {
  /// The descriptor to poll for input.
  package let descriptor: Int32

  /// Creates the eventfd; nil if the system has no descriptor left.
  package init?() {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard descriptor >= 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Wakes the waiting thread. Any thread. The counter stays until it is reset, which is not needed with edge-triggered
  /// watching.
  package func wake() {
    eventfd_write(descriptor, 1)
  }

  /// Resets the counter.
  package func reset() {
    var count: eventfd_t = 0
    eventfd_read(descriptor, &count)
  }

  /// Returns true if it was woken, now or within the given time.
  func wait(milliseconds: Int32) -> Bool {
    var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&poller, 1, milliseconds) > 0
  }
}

/// An epoll set in which every descriptor is watched edge-triggered and identified by a number.
final class Epoll: Sendable {
  private static let eventCount = 512
  private let descriptor: Int32

  /// Creates a set; nil if the system has no descriptor left.
  init?() {
    descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard descriptor >= 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Watches a descriptor: for input, or for room to send and the end of its peer. Returns false if that fails.
  func add(_ watched: Int32, number: UInt64, forInput: Bool) -> Bool {
    let interest = forInput ? EPOLLIN.rawValue : EPOLLOUT.rawValue | EPOLLRDHUP.rawValue
    var event = epoll_event(events: interest | EPOLLET.rawValue, data: epoll_data_t(u64: number))
    return epoll_ctl(descriptor, EPOLL_CTL_ADD, watched, &event) == 0
  }

  /// Removes a descriptor. Required before closing it, as long as there may be a duplicate.
  func remove(_ watched: Int32) {
    epoll_ctl(descriptor, EPOLL_CTL_DEL, watched, nil)
  }

  /// Waits for at most the given time, and reports the number of each event and whether the peer is gone.
  func wait(milliseconds: Int32, _ body: (_ number: UInt64, _ isGone: Bool) -> Void) {
    let gone = EPOLLRDHUP.rawValue | EPOLLHUP.rawValue | EPOLLERR.rawValue
    withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: Self.eventCount) { events in
      let count = epoll_wait(descriptor, events.baseAddress, Int32(events.count), milliseconds)
      for event in events.prefix(max(0, Int(count))) {
        body(event.data.u64, event.events & gone != 0)
      }
    }
  }
}

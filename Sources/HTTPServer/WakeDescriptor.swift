import CMicrohttpd
import Glibc

/// An eventfd: one thread waits for it, alone or in an epoll set, and any other wakes it.
package final class WakeDescriptor: Sendable {
  /// What is polled for input.
  package let descriptor: Int32

  /// `nil` where the system has no descriptor left.
  package init?() {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard descriptor >= 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Any thread. The counter stays until it is reset, which those need not do that watch it for edges.
  package func wake() {
    eventfd_write(descriptor, 1)
  }

  /// Forgets that it was woken.
  package func reset() {
    var count: eventfd_t = 0
    eventfd_read(descriptor, &count)
  }

  /// Whether it was woken, now or within the time given.
  func wait(milliseconds: Int32) -> Bool {
    var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&poller, 1, milliseconds) > 0
  }
}

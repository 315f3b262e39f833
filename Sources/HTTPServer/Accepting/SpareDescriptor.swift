import Glibc

/// A descriptor that is kept for the moment when none is left: it is given up to accept the connection that waits,
/// which is closed then, and opened again. Without it accept(2) would fail for as long as none is left, while its
/// socket stays readable. One thread.
struct SpareDescriptor: ~Copyable {
  private var descriptor: Int32 = -1

  /// Opens it.
  init() {
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Whether there is one. Another thread may have opened a file at the moment when it was given up: then it is made
  /// good before any connection is taken, or those that come next could not even be closed.
  mutating func isKept() -> Bool {
    if descriptor < 0 { descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC) }
    return descriptor >= 0
  }

  /// Accepts the connection that waits in the place of the spare, and closes it. False where none waits, or another
  /// thread was quicker and had the descriptor.
  mutating func closeNext(of listener: Int32) -> Bool {
    if descriptor >= 0 { close(descriptor) }
    let connection = accept(listener, nil, nil)
    if connection >= 0 { close(connection) }
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC)
    return connection >= 0
  }
}

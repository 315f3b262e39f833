public import Glibc

/// A value that can be accessed only while its lock is held.
///
/// Like `Synchronization.Mutex`, but with a `pthread_mutex_t`: the thread sanitizer knows that lock, while it reports
/// every use of `Mutex` on Linux as a race. A test suite under the sanitizer is worth more than a futex saves.
///
/// Sendable although it has a variable, because `value` is only accessed in `withLock`, between lock and unlock of a
/// mutex that lives exactly as long as this object.
@usableFromInline package final class Locked<Value>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline var value: Value

  /// Creates a lock around `initial`, to which no other reference may remain.
  @inlinable package init(_ initial: consuming sending Value) {
    mutex = .allocate(capacity: 1)
    mutex.initialize(to: pthread_mutex_t())
    pthread_mutex_init(mutex, nil)
    value = initial
  }

  deinit {
    pthread_mutex_destroy(mutex)
    mutex.deinitialize(count: 1)
    mutex.deallocate()
  }

  /// Runs `body` with the value while no other thread has access, and returns its result. Not reentrant: a `body` that
  /// locks the same object again waits for ever. Inlinable, because a generic function that is called in another module
  /// works with types that it looks up at run time; for that the compiler requires the type to be usable from inline
  /// code too.
  @inlinable package func withLock<Result, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}

/// A closure to store under a lock.
///
/// `Locked` is generic, and a closure that is the value itself is converted at each access, and converted back into
/// another closure that calls the first: after a million accesses a call goes through two million closures. In a struct
/// it is not converted.
package struct KeptAction<Argument, Result>: Sendable {
  private let body: @Sendable (Argument) -> Result

  /// Creates a wrapper of a closure.
  package init(_ body: @escaping @Sendable (Argument) -> Result) { self.body = body }

  /// Calls the closure.
  package func callAsFunction(_ argument: Argument) -> Result { body(argument) }
}

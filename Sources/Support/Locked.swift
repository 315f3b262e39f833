public import Glibc

/// A value that can be reached only while its lock is held.
///
/// The same promise as `Synchronization.Mutex`, on a `pthread_mutex_t`: the thread sanitizer knows that lock, while it
/// takes every use of `Mutex` on Linux for a race, and a suite that it cannot watch is worth less than a futex saves.
///
/// Sendable although it holds a variable, because `value` is touched in `withLock` alone, between lock and unlock of a
/// mutex that lives exactly as long as this object.
@usableFromInline package final class Locked<Value>: @unchecked Sendable {
  @usableFromInline let mutex: UnsafeMutablePointer<pthread_mutex_t>
  @usableFromInline var value: Value

  /// Takes over `initial`; no other reference to it may remain.
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

  /// Runs `body` with the value while no other thread can, and gives what it gives. Not reentrant: a `body` that locks
  /// the same object again waits for ever. Inlinable, since a generic function that is called in another module works
  /// with types that it looks up at run time; for that the compiler wants the type to be usable from inline code too.
  @inlinable package func withLock<Result, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return try body(&value)
  }
}

/// A closure that is kept under a lock.
///
/// `Locked` is generic, and a closure that is its value itself is converted whenever it is looked at, and converted
/// back into another one that calls the first: after a million looks a call goes through two million closures. In a
/// struct it stays what it is.
package struct KeptAction<Argument, Result>: Sendable {
  private let body: @Sendable (Argument) -> Result

  /// Keeps a closure.
  package init(_ body: @escaping @Sendable (Argument) -> Result) { self.body = body }

  /// Calls it.
  package func callAsFunction(_ argument: Argument) -> Result { body(argument) }
}

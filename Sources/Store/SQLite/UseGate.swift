import Foundation

/// Keeps a resource from being closed while it is in use, and from being used afterwards.
///
/// Sendable although it holds a class that is not: `NSCondition` is its own lock, and guards both variables.
final class UseGate: @unchecked Sendable {
  private let condition = NSCondition()
  private var users = 0
  private var isClosed = false

  /// Begins a use, to be ended by `leave`. False once it is closed: then there is none.
  func enter() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !isClosed else { return false }
    users += 1
    return true
  }

  /// Ends a use.
  func leave() {
    condition.lock()
    users -= 1
    condition.broadcast()
    condition.unlock()
  }

  /// Admits no further use, and returns when every use has ended. False where it was closed already. Not to be called
  /// during a use.
  func close() -> Bool {
    condition.lock()
    defer { condition.unlock() }
    guard !isClosed else { return false }
    isClosed = true
    while users > 0 { condition.wait() }
    return true
  }
}

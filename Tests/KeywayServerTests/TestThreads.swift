import Foundation
import Support
import TestKit
import Testing

/// What several clients do at the same time.
enum TestThreads {
  /// Runs `body` on so many threads of its own, each with its number, and gives what goes wrong in them.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) -> [String] {
    let failures = Locked<[String]>([])
    let group = DispatchGroup()
    for index in 0..<count {
      group.enter()
      Thread.detachNewThread {
        do {
          try body(index)
        } catch {
          failures.withLock { $0.append("\(index): \(error)") }
        }
        group.leave()
      }
    }
    #expect(group.wait(timeout: .now() + Deadline.patienceSeconds) == .success)
    return failures.withLock { $0 }
  }
}

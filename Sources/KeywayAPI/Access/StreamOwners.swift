import Expressions
import HTTPServer
import Locking
import Tokens

/// For whom each stream was opened, where that is known.
final class StreamOwners: Sendable {
  private let owners = Locked<[StreamID: Identity]>([:])

  /// A stream is opened for an identity.
  func add(_ id: StreamID, _ identity: Identity) { owners.withLock { $0[id] = identity } }

  /// A stream has ended.
  func remove(_ id: StreamID) { owners.withLock { $0[id] = nil } }

  /// The `sub` of whom a stream was opened for; nil where that is nobody.
  func subject(of id: StreamID) -> ExactText? { owners.withLock { $0[id].map { ExactText($0.subject) } } }

  /// The streams whose owners are not `isValid` any more. They are told of once.
  func takeInvalid(_ isValid: (Identity) -> Bool) -> [StreamID] {
    // One token may have thousands of streams.
    let all = owners.withLock { $0 }
    let invalid = all.filter { !isValid($0.value) }.map(\.key)
    guard !invalid.isEmpty else { return [] }
    owners.withLock { owners in
      for id in invalid { owners[id] = nil }
    }
    return invalid
  }
}

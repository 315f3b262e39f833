import Expressions
import HTTPServer
import HTTPTypes
import Locking
import Tokens

/// For whom a stream was opened.
struct StreamOwner: Sendable {
  let identity: Identity
  /// The name of the session, where a cookie said who asks.
  let session: String?

  /// Who sends a request; nil for nobody.
  init?(_ requester: Requester, in request: borrowing Request) {
    guard let identity = requester.identity else { return nil }
    self.identity = identity
    session = request.header(.authorization) == nil ? Session(in: request)?.name : nil
  }
}

/// For whom each stream was opened, where that is known.
final class StreamOwners: Sendable {
  private let owners = Locked<[StreamID: StreamOwner]>([:])

  /// A stream is opened for someone.
  func add(_ id: StreamID, _ owner: StreamOwner) { owners.withLock { $0[id] = owner } }

  /// A stream has ended.
  func remove(_ id: StreamID) { owners.withLock { $0[id] = nil } }

  /// The `sub` of whom a stream was opened for; nil where that is nobody.
  func subject(of id: StreamID) -> ExactText? { owners.withLock { $0[id].map { ExactText($0.identity.subject) } } }

  /// The streams whose owners are not `isValid` any more. They are told of once.
  func takeInvalid(_ isValid: (StreamOwner) -> Bool) -> [StreamID] {
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

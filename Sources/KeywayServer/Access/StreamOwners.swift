import CEL
import HTTPServer
import Support

/// The identity that a stream was opened for.
struct StreamOwner: Sendable {
  let identity: Identity
  /// The session that the stream ends with; nil if a token opened it.
  let session: SessionDigest?

  /// The sender of a request; nil for nobody.
  init?(_ requester: Requester) {
    guard case .known(let known) = requester else { return nil }
    (identity, session) = (known.identity, known.session)
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

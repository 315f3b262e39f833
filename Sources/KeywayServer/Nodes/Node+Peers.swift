import Dispatch
import HTTPServer
import KeyValueModel
import Store
import Support

/// What a peer does about a request that names a state which this node has not come to: another node may have.
extension Node {
  /// Notes what becomes of the store.
  func note(_ notice: StoreNotice) {
    switch notice {
    case .refusesWrites: refusing.withLock { $0 = $0 ?? present }
    case .takesWrites: refusing.withLock { $0 = nil }
    case .refusesGrowth, .snapshotFailed, .snapshotWritten, .cacheFailed, .cacheWritten: break
    }
  }

  /// Whether writes that the journal refuses do not count yet: a peer without its database is what a follower is that
  /// hears nothing, and is ready up to `nodes.staleSeconds`.
  var toleratesRefusals: Bool {
    guard let journal, journal.silence < .seconds(options.staleSeconds) else { return false }
    guard let since = refusing.withLock({ $0 }) else { return true }
    return present - min(present, since) < UInt64(options.staleSeconds) * 1_000_000_000
  }

  /// Where the journal is asked how far it is.
  private static let inquiries = DispatchQueue(
    label: "keyway.peer.inquiries", qos: .userInitiated, attributes: .concurrent)

  /// Has a request wait whose `since`, `Last-Event-ID`, `If-Match` or `If-None-Match` names a state of another node
  /// that is still to come here; nil where it need not, because the journal does not know of such a state either.
  /// Throws `behind` where it has waited long enough, may not wait, or the journal cannot be asked.
  func inquiry(about request: borrowing Request, _ store: Store) throws(Problem) -> HandlerResponse? {
    guard let journal, let revision = Self.newestNamed(by: request, store.epoch), revision > store.revision else {
      return nil
    }
    let client = request.client
    if request.isPostponed, journal.bounds.last < revision, journal.silence < WriteTime.silence { return nil }
    guard !request.isPostponed, waits.hasRoom(for: client) else {
      throw Problem(.behind, "the store is at revision \(store.revision) and has not come to \(revision)")
    }
    return .postponed { [waits] postponement in
      waits.add(of: client, until: revision, present: { store.revision }) { postponement.end() }
      // What is known to be there needs no question.
      guard journal.bounds.last < revision else { return }
      Self.inquiries.async {
        guard (try? journal.refresh()) != nil, journal.bounds.last < revision else { return }
        postponement.end()
      }
    }
  }

  /// Makes a request wait until this node has what other peers had appended when it came. Returns nil for a request
  /// that has waited already or may not wait, and on a node that shares no journal.
  func refreshed(for request: borrowing Request, _ store: Store) -> HandlerResponse? {
    let client = request.client
    guard let journal, !request.isPostponed, waits.hasRoom(for: client) else { return nil }
    return .postponed { [waits] postponement in
      let beginning = waits.present
      Self.inquiries.async {
        try? journal.refresh()
        waits.add(of: client, until: journal.bounds.last, since: beginning, present: { store.revision }) {
          postponement.end()
        }
      }
    }
  }

  /// Throws `leader-unreachable`, or `store-unavailable` on a peer, if this node has heard nothing for so many seconds
  /// of the node that it follows, or of its database: tokens may have been revoked meanwhile. 0 is for ever.
  func checkRevocations(within seconds: Int) throws(Problem) {
    guard seconds > 0 else { return }
    let remedy = "tokens may have been revoked meanwhile (access.staleSeconds)"
    if let following, following.silenceMilliseconds >= UInt64(seconds) * 1_000 {
      throw Problem(
        .leaderUnreachable, "nothing was heard of \(following.plan.leader.client.address) for \(seconds) s; \(remedy)")
    }
    if let journal, journal.silence >= .seconds(seconds) {
      throw Problem(.storeUnavailable, "the database has not answered for \(seconds) s; \(remedy)")
    }
  }
}

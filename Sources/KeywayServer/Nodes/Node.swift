import Dispatch
import HTTPServer
import HTTPTypes
import KeyValueModel
import Outbound
import Store
import Support
import Synchronization

/// What clients and other nodes may know of this one, and what it does about clients that have seen a newer state (the
/// specification, section 13).
package final class Node: Sendable {
  /// What can be set.
  let options: Options
  /// Where other nodes reach this one.
  var url: String { directory.url }
  /// What the names of its streams and pages begin with.
  var mark: String { directory.mark.text }
  /// Requests that wait for a state.
  let waits: RevisionWaits
  /// Followers that wait for the next commit.
  let pollers: RevisionWaits
  /// Answers of other nodes that wait for this one to have come as far.
  private let answers: RevisionWaits
  /// Writes that other nodes have passed on to this one.
  let writes: PassedWrites
  /// The nodes that follow this one.
  let followers: Followers
  /// The other nodes.
  let directory: NodeDirectory
  /// What nodes are to know of streams that objects last with.
  private let streamEnds: StreamEnds
  /// Asks other nodes for streams that writes name.
  let inquiry: StreamInquiry
  /// The client for requests to nodes behind TLS.
  private let outbound: OutboundClient
  /// Nanoseconds that only grow.
  private let now: @Sendable () -> UInt64
  /// Since when the journal has refused writes; nil where it takes them.
  private let refusing = Locked<UInt64?>(nil)
  /// How this node keeps up with another, and where it passes writes on to; nil where it takes writes itself.
  private let leadership = Locked<(following: Following, forwarder: WriteForwarder)?>(nil)
  /// Whether it does: every request asks that.
  private let isFollowing = Atomic(false)
  /// Where requests are passed on that name what another node has made; nil before there is a store.
  private let names = Locked<NamePassing?>(nil)
  /// Where writes are passed on to the peer that appended last; nil where there are no peers.
  private let pen = Locked<PenPassing?>(nil)

  /// For how long a follower waits for a commit, in seconds: it hears that often that nothing happened.
  private static let pollSeconds = 2

  /// The journal that it shares with others; nil where it has its own.
  let journal: (any SharedJournal)?

  /// The parts of `/v1/nodes` that this node serves.
  let service: NodeService
  /// True if this node asks who its clients are (`access.keys`).
  let hasAccess: Bool
  /// True if other nodes have to know who asks: this one does, or the one that it follows may.
  private let hasCredentials: Bool

  /// Creates the node at an address and port, which may share its journal with others.
  ///
  /// - Parameters:
  ///   - follows: True if it is going to follow another node.
  ///   - hasAccess: True if it asks who its clients are.
  ///   - now: Returns nanoseconds that only grow.
  /// - Throws: A fault that names the entry of `nodes.urls` that is not an address.
  init(
    _ options: Options, host: String, port: UInt16, journal: (any SharedJournal)? = nil, follows: Bool = false,
    hasAccess: Bool = false, now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds) }
  ) throws(NodeFault) {
    self.options = options
    self.journal = journal
    self.hasAccess = hasAccess
    service = NodeService(
      isFollowable: options.followers, sharesJournal: journal != nil, follows: follows)
    self.now = now
    waits = RevisionWaits(options.waits, now: now)
    var polling = RevisionWaits.Limits()
    polling.seconds = Self.pollSeconds
    polling.requests = options.followersMaximum
    polling.requestsPerClient = options.followersMaximum
    pollers = RevisionWaits(polling, now: now)
    followers = Followers(limit: options.followersMaximum, joining: options.joining, now: now)
    writes = PassedWrites(limit: options.forwarding.remembered)
    answers = RevisionWaits(options.forwarding.waits(seconds: options.waits.seconds), now: now)
    directory = NodeDirectory(
      url: options.url == "auto" ? Self.url(host: host, port: port) : options.url, followers: followers,
      listed: try NodeURLs(options.urls), journal: journal)
    streamEnds = StreamEnds(directory, now: now)
    hasCredentials = hasAccess || follows
    outbound = options.makeOutboundClient()
    inquiry = StreamInquiry(options, directory, hasCredentials: hasCredentials, by: outbound)
  }

  private static func url(host: String, port: UInt16) -> String {
    if host.hasPrefix("unix:") { return host }
    return "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// From now on this node follows another and passes writes on. `restore` gets what was kept with the commits that it
  /// takes over. To be called before the first request.
  func follow(
    _ plan: Following.Plan, _ store: Store, _ revocations: Revocations, _ conditions: ConditionLog,
    restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) {
    directory.beginFollowing()
    StreamLeases(of: store).leave()
    let following = Following(
      plan, store: store, revocations: revocations, directory: directory, conditions: conditions, now: now,
      restore: restore)
    let forwarder = WriteForwarder(options, store: store, following: following, answers: answers, by: outbound)
    leadership.withLock { $0 = (following, forwarder) }
    isFollowing.store(true, ordering: .releasing)
  }

  /// From now on a store's journal keeps what followers need of it.
  func keepRecords(of store: Store) {
    store.keepRecords { [followers] in followers.forgettable(upTo: $0, $1) }
  }

  /// From now on requests are passed on that name what another node has made. To be called before the first request.
  func passNames(_ store: Store, _ services: StreamServices) {
    names.withLock {
      $0 = NamePassing(
        options.forwarding, directory: directory, answers: answers, store: store, services: services,
        hasCredentials: hasCredentials, by: outbound)
    }
  }

  /// From now on writes are passed on to the peer that appended last, where there are peers. To be called before the
  /// first request.
  func passWrites(_ store: Store) {
    guard let journal else { return }
    pen.withLock {
      $0 = PenPassing(
        journal, store, directory, options, answers: answers, writes: writes, hasCredentials: hasAccess, by: outbound)
    }
  }

  /// Begins to follow, where it does and the store has read its journal.
  func begin(_ store: Store) {
    if store.condition == .serving { following?.start() }
  }

  /// How this node keeps up with the one that it follows; nil where it follows none.
  var following: Following? {
    isFollowing.load(ordering: .acquiring) ? leadership.withLock { $0?.following } : nil
  }

  /// Where writes are passed on; nil where this node takes them.
  var forwarder: WriteForwarder? {
    isFollowing.load(ordering: .acquiring) ? leadership.withLock { $0?.forwarder } : nil
  }

  /// Where requests are passed on that name what another node has made; nil before there is a store.
  var passing: NamePassing? { names.withLock { $0 } }

  /// True if this node neither follows nor is followed, and has its journal for itself: there is no other node for it.
  var isSingle: Bool { journal == nil && !options.followers && !service.namesStreams }

  /// Whether there has been no other node, so that no name is another's.
  var isAlone: Bool { directory.isAlone }

  /// Where writes are passed on to the peer that appended last; nil where there are no peers.
  var penPassing: PenPassing? { pen.withLock { $0 } }

  // MARK: What it says of itself

  /// `single`, `leader` once a follower was heard, or `follower`.
  var role: String { following != nil ? "follower" : followers.wasHeard ? "leader" : "single" }

  /// For how many milliseconds this node has heard nothing of the one that it follows; 0 where it follows none.
  var silenceMilliseconds: UInt64 { following?.silenceMilliseconds ?? 0 }

  /// The newest revision that this node knows of.
  func newest(_ store: Store) -> Revision { max(store.revision, following?.newest ?? 0) }

  /// For how many seconds it may have been behind: since it last heard, where that is longer ago than it takes to hear
  /// that nothing happened.
  var behindSeconds: Int {
    let milliseconds = silenceMilliseconds
    return milliseconds > UInt64(Self.pollSeconds + 1) * 1_000 ? Int(milliseconds / 1_000) : 0
  }

  /// What `/v1/status` says of it.
  func status(_ store: Store) -> JSONObject {
    var status: JSONObject = [
      "role": .string(role), "node": .string(url), "behind": .integer(Int64(newest(store) - store.revision)),
      "behindSeconds": .integer(Int64(behindSeconds)),
    ]
    if let following {
      status["follows"] = .string(following.plan.leader.client.address.description)
      if let reason = following.reason { status["silence"] = .string(reason) }
    }
    let present = followers.present
    if !present.isEmpty {
      status["followers"] = .array(
        present.map { entry in
          let behind = store.revision - min(store.revision, entry.follower.revision)
          return .object(["node": .string(entry.name), "behind": .integer(Int64(behind))])
        })
    }
    return status
  }

  /// Throws `leader-unreachable` where this node has heard nothing for too long.
  func checkHearing() throws(Problem) {
    guard let following else { return }
    if let missing = following.missing {
      throw Problem(.storeUnavailable, "this node begins with a copy, and \(missing) revisions are still to come")
    }
    guard following.silenceMilliseconds >= UInt64(options.staleSeconds) * 1_000 else { return }
    let reason = following.reason.map { ": \($0)" } ?? ""
    throw Problem(
      .leaderUnreachable,
      "nothing was heard of \(following.plan.leader.client.address) for \(following.silenceMilliseconds / 1_000) s"
        + reason)
  }

  /// Writes down what there is to count.
  func export(_ store: Store, to registry: PrometheusRegistry) {
    registry.set(.requestsBehind, to: Double(waits.count))
    registry.set(.followers, to: Double(followers.present.count))
    registry.set(.revisionsBehind, to: Double(newest(store) - store.revision))
    registry.set(.silenceSeconds, to: Double(silenceMilliseconds) / 1_000)
    let passed =
      (forwarder?.waitingCount ?? 0) + (penPassing?.waitingCount ?? 0) + (passing?.waitingCount ?? 0)
      + inquiry.waitingCount + answers.count
    registry.set(.forwardedWrites, to: Double(passed))
    registry.set(.relayedStreams, to: Double(passing?.relay.count ?? 0))
  }

  // MARK: Waiting

  /// Has a request wait that names a state to which the store has not come; nil where it need not. Throws `behind`
  /// where it has waited long enough, or may not wait.
  func postponement(of request: borrowing Request, _ store: Store) throws(Problem) -> HandlerResponse? {
    guard let cursor = wanted(by: request, store) else { return try inquiry(about: request, store) }
    return try waits.response(to: request, until: cursor, in: store)
  }

  /// The newest state that a request names and the store has not come to: a node that takes writes knows that a tag or
  /// an event of the future is none, and only one that follows has yet to hear of it.
  private func wanted(by request: borrowing Request, _ store: Store) -> Cursor? {
    var newest: Cursor?
    func note(_ cursor: Cursor?) {
      guard let cursor, cursor.epoch == store.epoch, cursor.revision > store.revision else { return }
      if newest.map({ $0.revision < cursor.revision }) ?? true { newest = cursor }
    }
    note(request.header(.keywayCursor).flatMap { Cursor($0) })
    guard following != nil else { return newest }
    note(Self.newestNamed(by: request, store.epoch).map { Cursor(epoch: store.epoch, revision: $0) })
    return newest
  }

  /// The newest revision of an epoch that a request names in a tag, or to resume from.
  static func newestNamed(by request: borrowing Request, _ epoch: String) -> Revision? {
    var newest: Revision?
    func note(_ revision: Revision) { newest = max(newest ?? 0, revision) }
    func note(_ text: String?) {
      if let cursor = text.flatMap({ Cursor($0) }), cursor.epoch == epoch { note(cursor.revision) }
    }
    note(request.header(.lastEventID))
    // Most targets have no query, and bytes are looked through many times as fast as characters.
    if request.target.utf8.contains(UInt8(ascii: "?")), let target = try? Target(request.target) {
      for name in ["since", "lastEventId"] { note(target[name]) }
    }
    for name in [HTTPField.Name.ifNoneMatch, .ifMatch] {
      guard let text = request.header(name), let condition = try? EntityTagCondition(text, header: name.rawName) else {
        continue
      }
      for revision in condition.revisions(of: epoch) { note(revision) }
    }
    return newest
  }

  /// A revision was published.
  func reached(_ revision: Revision) {
    waits.reached(revision)
    pollers.reached(revision)
    answers.reached(revision)
    passing?.relay.reached(revision)
  }

  /// Does what is to be done, again and again, about objects that last with streams: ends those whose time has come,
  /// where this node takes writes, and says otherwise which of its streams are gone.
  func endLeases(_ store: Store, _ streams: StreamRegistry) {
    if let following {
      streamEnds.tell(following.plan.leader, of: streams, in: store)
    } else {
      streamEnds.endSilent(in: store, journal)
      store.endLeases { streams.isThere(StreamID($0)) }
    }
  }

  /// What the clock says.
  private var present: UInt64 { now() }

  /// Ends the waits; no request waits from now on.
  func beginDraining() {
    waits.close()
    pollers.close()
  }

  /// Ends what it does with other nodes.
  func stop() {
    defer { outbound.stop() }
    answers.close()
    // It holds the store, which holds this.
    let passing = names.withLock { names in
      defer { names = nil }
      return names
    }
    passing?.stop()
    let penPassing = pen.withLock { pen in
      defer { pen = nil }
      return pen
    }
    penPassing?.stop()
    inquiry.stop()
    guard let (following, forwarder) = leadership.withLock({ $0 }) else { return }
    forwarder.stop()
    following.stop()
  }
}

// MARK: - Peers

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
  private func inquiry(about request: borrowing Request, _ store: Store) throws(Problem) -> HandlerResponse? {
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

/// The parts of `/v1/nodes` that a node serves; every other part is 404, as if there were no such resource.
///
/// A server on its own serves none, so that no client can pose as a node there.
struct NodeService: Hashable, Sendable {
  /// True if other nodes may follow this one: they are given its journal and its snapshot. `nodes.followers`.
  let isFollowable: Bool
  /// True if nodes forward writes to this one: its followers do, and the peers that share its journal. Only then does
  /// it heed `Keyway-Request`.
  let takesWrites: Bool
  /// True if nodes may ask this one for its streams, which objects last with anywhere: also a follower's.
  let namesStreams: Bool

  /// Creates the service of a node that may be followed, shares its journal, or follows another node.
  init(isFollowable: Bool, sharesJournal: Bool, follows: Bool) {
    self.isFollowable = isFollowable
    takesWrites = isFollowable || sharesJournal
    namesStreams = takesWrites || follows
  }
}

/// A node that shares its journal with others, which write too (the specification, section 13).
struct Peer: Sendable {
  private let journal: any SharedJournal
  private let store: Store

  /// Nil where no other node writes to the store's journal.
  init?(_ store: Store) {
    guard let journal = store.journal as? any SharedJournal else { return nil }
    self.journal = journal
    self.store = store
  }

  /// How many revisions of others this node has heard of and not taken over yet.
  private var behind: UInt64 {
    let (last, revision) = (journal.bounds.last, store.revision)
    return last - min(last, revision)
  }

  /// For how many seconds the journal has not answered; 0 while it does.
  private var silence: Int64 { journal.silence > WriteTime.silence ? journal.silence.components.seconds : 0 }

  /// What `/v1/status` says of it.
  var status: JSONObject {
    var status: JSONObject = [
      "role": .string("peer"), "behind": .integer(Int64(behind)), "behindSeconds": .integer(silence),
      "pen": .string(journal.pen),
    ]
    if let cache = journal.cache?.journal { status["cached"] = .integer(Int64(cache.bounds.last)) }
    return status
  }

  /// Tells the metrics.
  func export(to registry: PrometheusRegistry) {
    registry.set(.peerBehind, to: Double(behind))
    registry.set(.peerSilence, to: Double(silence))
    registry.set(.peerPen, to: journal.hasPen ? 1 : 0)
    registry.set(.overtakenBatches, to: Double(store.overtakenBatches))
  }
}

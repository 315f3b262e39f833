import Dispatch
package import HTTPServer
package import HTTPTypes
package import KeyValueModel
package import KeywayServer
import Outbound
package import Store
import Support

/// The node of a server that follows another one, may be followed, or shares its journal with peers (the specification,
/// section 13).
package final class ClusterNode: Node {
  /// The options.
  let options: ClusterOptions
  /// The address at which other nodes reach this one.
  package let url: String
  package let streamNumbers: StreamNumbers?
  /// The requests that wait for a revision.
  let waits: RevisionWaits
  /// The followers that wait for the next commit.
  let pollers: RevisionWaits
  /// The answers of other nodes that wait for this one to reach their revision.
  private let answers: RevisionWaits
  private let waitSeconds: Int
  /// The writes that other nodes have forwarded to this one.
  let writes: PassedWrites
  /// The nodes that follow this one.
  let followers: Followers
  /// The directory of the other nodes.
  let directory: NodeDirectory
  /// Exchanges news with other nodes about ended streams that objects are bound to.
  private let streamEnds: StreamEnds
  /// Asks other nodes about streams that writes name.
  let inquiry: StreamInquiry
  /// The client for requests to nodes over TLS.
  private let outbound: OutboundClient
  /// Returns monotonic time in nanoseconds.
  private let now: @Sendable () -> UInt64
  /// The time since which the journal has refused writes, in nanoseconds of the clock; nil while it takes them.
  private let refusing = Locked<UInt64?>(nil)

  /// The time that a follower waits for a commit, in seconds: it gets an answer that often even if nothing happens.
  private static let pollSeconds = 2

  /// The journal that this node shares with others; nil if it has its own.
  let journal: (any SharedJournal)?
  /// True if this node authenticates clients (`access.keys`).
  let hasAccess: Bool
  /// True if forwarded requests include the client's credentials: this node authenticates clients, or the one that it
  /// follows may.
  private let hasCredentials: Bool

  /// The connections to other nodes that need the parts of the server.
  struct Ways: Sendable {
    /// Forwards requests that name a stream or a page of another node.
    let passing: NamePassing
    /// Forwards writes to the peer that appended last; nil if there are no peers.
    let peerWrites: PeerWrites?
    /// Keeps this node up to date with its leader; nil if it takes writes itself.
    let following: Following?
    /// Forwards writes to the leader; nil if this node takes them.
    let leaderWrites: LeaderWrites?
  }

  /// The connections, from `attach` to `stop`; nil otherwise.
  private let attached = Locked<Ways?>(nil)

  /// Creates the node of a server at a site.
  ///
  /// - Parameters:
  ///   - url: The address at which other nodes reach it.
  ///   - listed: The addresses that other nodes may give as their own.
  ///   - now: Returns monotonic time in nanoseconds.
  init(
    _ options: ClusterOptions, at site: NodeSite, url: String, listed: NodeURLs,
    now: @escaping @Sendable () -> UInt64 = { UInt64(SystemClock.nanoseconds) }
  ) {
    (self.options, self.url, hasAccess, self.now) = (options, url, site.hasAccess, now)
    let (journal, follows) = (site.journal as? any SharedJournal, options.following != nil)
    self.journal = journal
    let isOneOfMany = journal != nil || follows
    streamNumbers = StreamNumbers(node: url, random: isOneOfMany ? .random(in: .min ... .max) : nil)
    waits = RevisionWaits(site.waits, now: now)
    waitSeconds = site.waits.seconds
    var polling = RevisionWaits.Limits()
    polling.seconds = Self.pollSeconds
    polling.requests = options.followersMaximum
    polling.requestsPerClient = options.followersMaximum
    pollers = RevisionWaits(polling, now: now)
    followers = Followers(limit: options.followersMaximum, joining: options.joining, now: now)
    writes = PassedWrites(limit: options.forwarding.remembered)
    answers = RevisionWaits(options.forwarding.waits(seconds: waitSeconds), now: now)
    directory = NodeDirectory(url: url, followers: followers, listed: listed, journal: journal)
    streamEnds = StreamEnds(directory, now: now)
    hasCredentials = hasAccess || follows
    outbound = options.makeOutboundClient()
    inquiry = StreamInquiry(
      options, directory, hasCredentials: hasCredentials, patience: .seconds(waitSeconds), by: outbound)
  }

  // MARK: Life

  package func attach(
    to parts: ServerParts, _ admission: Admission, _ conditions: ConditionLog,
    restore: @escaping @Sendable ([StoredAttachment]) -> Void
  ) -> any RequestPlacement {
    let (store, revocations) = (parts.store, parts.access.revocations)
    store.keepRecords { [followers] in followers.forgettable(upTo: $0, $1) }
    // Followers learn of revocations at once.
    revocations.onChange { [pollers] in pollers.endAll() }
    let passing = NamePassing(
      options.forwarding, directory: directory, answers: answers, store: store,
      services: parts.streams.registry.services,
      hasCredentials: hasCredentials, by: outbound)
    let peerWrites = journal.map { journal in
      PeerWrites(
        journal, store, directory, options, answers: answers, writes: writes, hasCredentials: hasAccess, by: outbound)
    }
    let following = options.following.map { plan in
      directory.beginFollowing()
      StreamLeases(of: store).leave()
      return Following(
        plan, store: store, revocations: revocations, directory: directory, conditions: conditions, now: now,
        restore: restore)
    }
    let leaderWrites = following.map {
      LeaderWrites(
        options, store: store, following: $0, answers: answers, asking: .seconds(waitSeconds), by: outbound)
    }
    let ways = Ways(passing: passing, peerWrites: peerWrites, following: following, leaderWrites: leaderWrites)
    attached.withLock { $0 = ways }
    return NodePlacement(
      node: self, ways: ways, store: store, admission: admission,
      passedWrites: PassedWriteHandlers(store: store, writes: writes, readings: parts.readings),
      staleSeconds: parts.access.options.staleSeconds)
  }

  package func routes(in parts: ServerParts) -> [Route] {
    NodeHandlers(
      store: parts.store, node: self, revocations: parts.access.revocations, streams: parts.streams.registry,
      readings: parts.readings, files: parts.files.openFiles
    ).routes
  }

  package func restore(_ attachments: [StoredAttachment]) { writes.restore(attachments) }

  package func recovered(_ store: Store) { writes.begin(after: store.recoveryBase) }

  package func start(_ store: Store) {
    if store.condition == .serving { following?.start() }
  }

  package func beginDraining() {
    waits.close()
    pollers.close()
  }

  package func stop() {
    defer { outbound.stop() }
    answers.close()
    // These hold the store, which holds this node.
    let ways = attached.withLock { attached in
      defer { attached = nil }
      return attached
    }
    ways?.passing.stop()
    ways?.peerWrites?.stop()
    inquiry.stop()
    ways?.leaderWrites?.stop()
    ways?.following?.stop()
  }

  /// Keeps this node up to date with its leader; nil if it follows no node.
  var following: Following? { options.following == nil ? nil : attached.withLock { $0?.following } }

  // MARK: What happens

  package func reached(_ revision: Revision) {
    waits.reached(revision)
    pollers.reached(revision)
    answers.reached(revision)
    attached.withLock { $0?.passing }?.relay.reached(revision)
  }

  package func streamEnded(_ id: StreamID) { attached.withLock { $0?.passing }?.relay.streamEnded(id) }

  package func endLeases(_ store: Store, _ streams: StreamRegistry) {
    guard let plan = options.following else {
      streamEnds.endSilent(in: store, journal)
      return store.endLeases { streams.exists(StreamID($0)) }
    }
    streamEnds.report(to: plan.leader, of: streams, in: store)
  }

  package func note(_ notice: StoreNotice) {
    switch notice {
    case .refusesWrites: refusing.withLock { $0 = $0 ?? now() }
    case .takesWrites: refusing.withLock { $0 = nil }
    case .refusesGrowth, .snapshotFailed, .snapshotWritten, .cacheFailed, .cacheWritten: break
    }
  }

  /// True if nodes forward writes to this one: its followers, or the peers that share its journal.
  package var takesForwardedWrites: Bool { options.followers || journal != nil }

  package func forward(
    _ request: borrowing Request, on route: Route, reading names: [HTTPField.Name]
  ) throws(Problem) -> HandlerResponse? {
    guard options.following != nil else { return nil }
    guard let leaderWrites = attached.withLock({ $0?.leaderWrites }) else {
      throw Problem(.draining, "the server is about to stop")
    }
    return try leaderWrites.forward(request, route, reading: names)
  }

  // MARK: What it says of itself

  /// `follower`, `leader` once a follower has made a request, or `single`.
  var role: String { options.following != nil ? "follower" : followers.hasHadAny ? "leader" : "single" }

  /// The time without contact with the leader, in milliseconds; 0 if this node follows no other.
  var silenceMilliseconds: UInt64 { following?.silenceMilliseconds ?? 0 }

  /// The newest revision that this node knows of while its store is at `present`.
  func newest(from present: Revision) -> Revision { max(present, following?.newest ?? 0) }

  /// The time for which this node may have been behind, in seconds: since the last contact, if that is longer ago than
  /// an answer takes when nothing happens; otherwise 0.
  var behindSeconds: Int {
    let milliseconds = silenceMilliseconds
    return milliseconds > UInt64(Self.pollSeconds + 1) * 1_000 ? Int(milliseconds / 1_000) : 0
  }

  package func status(_ store: Store) -> JSONObject {
    // Commits go on meanwhile: what is subtracted is read once.
    let revision = store.revision
    var status: JSONObject = [
      "role": .string(role), "node": .string(url),
      "behind": .integer(Int64(clamping: newest(from: revision) - revision)),
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
          let behind = revision - min(revision, entry.follower.revision)
          return .object(["node": .string(entry.name), "behind": .integer(Int64(behind))])
        })
    }
    if let journal { Peer(journal: journal, store: store).describe(in: &status) }
    return status
  }

  package func checkHearing() throws(Problem) {
    guard let following else { return }
    if let missing = following.missing {
      throw Problem(.storeUnavailable, "this node is catching up from a copy, and still lacks \(missing) revisions")
    }
    guard following.silenceMilliseconds >= UInt64(options.staleSeconds) * 1_000 else { return }
    let reason = following.reason.map { ": \($0)" } ?? ""
    throw Problem(
      .leaderUnreachable,
      "no news of the leader for \(following.silenceMilliseconds / 1_000) s (this node follows "
        + "\(following.plan.leader.client.address))\(reason)")
  }

  package func export(_ store: Store, to registry: PrometheusRegistry) {
    registry.set(.requestsBehind, to: Double(waits.count))
    registry.set(.followers, to: Double(followers.present.count))
    let revision = store.revision
    registry.set(.revisionsBehind, to: Double(newest(from: revision) - revision))
    registry.set(.silenceSeconds, to: Double(silenceMilliseconds) / 1_000)
    let ways = attached.withLock { $0 }
    let passed =
      (ways?.leaderWrites?.waitingCount ?? 0) + (ways?.peerWrites?.waitingCount ?? 0)
      + (ways?.passing.waitingCount ?? 0)
      + inquiry.waitingCount + answers.count
    registry.set(.forwardedWrites, to: Double(passed))
    registry.set(.relayedStreams, to: Double(ways?.passing.relay.count ?? 0))
    if let journal { Peer(journal: journal, store: store).export(to: registry) }
  }

  // MARK: Waiting

  /// Defers a request that names a state to which the store had not come at the revision `judged`, when the request was
  /// judged. Returns nil for any other request. Throws `behind` if the request has waited already or may not wait.
  func wait(
    for request: borrowing Request, judgedAt judged: Revision, _ store: Store
  ) throws(Problem) -> HandlerResponse? {
    guard let cursor = wanted(by: request, after: judged, store) else {
      return try inquiry(about: request, after: judged, store)
    }
    return try waits.response(to: request, until: cursor, judgedAt: judged, in: store)
  }

  /// Returns the newest state after a revision that a request names. Only a follower considers tags and event ids: a
  /// node that takes writes knows that those from the future are invalid.
  private func wanted(by request: borrowing Request, after revision: Revision, _ store: Store) -> Cursor? {
    var newest: Cursor?
    func note(_ cursor: Cursor?) {
      guard let cursor, cursor.epoch == store.epoch, cursor.revision > revision else { return }
      if newest.map({ $0.revision < cursor.revision }) ?? true { newest = cursor }
    }
    note(request.header(.keywayCursor).flatMap { Cursor($0) })
    guard options.following != nil else { return newest }
    note(Self.newestNamed(by: request, store.epoch).map { Cursor(epoch: store.epoch, revision: $0) })
    return newest
  }

  /// Returns the newest revision of an epoch that a request names in a tag, or to resume from.
  static func newestNamed(by request: borrowing Request, _ epoch: String) -> Revision? {
    var newest: Revision?
    func note(_ revision: Revision) { newest = max(newest ?? 0, revision) }
    func note(_ text: String?) {
      if let cursor = text.flatMap({ Cursor($0) }), cursor.epoch == epoch { note(cursor.revision) }
    }
    note(request.header(.lastEventID))
    // Most targets have no query, and a search in bytes is many times as fast as one in characters.
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
}

// MARK: - Peers

/// The handling, on a peer, of requests that name a state which this node has not reached, but another node may have.
extension ClusterNode {
  /// True while refusals by the journal do not count yet: a peer without its database is like a follower without
  /// contact, and stays ready for `nodes.staleSeconds`.
  package var toleratesRefusals: Bool {
    guard let journal, journal.silence < .seconds(options.staleSeconds) else { return false }
    guard let since = refusing.withLock({ $0 }) else { return true }
    let present = now()
    return present - min(present, since) < UInt64(options.staleSeconds) * 1_000_000_000
  }

  /// The queue for queries about the extent of the journal.
  private static let inquiries = DispatchQueue(
    label: "keyway.peer.inquiries", qos: .userInitiated, attributes: .concurrent)

  /// Defers a request whose `since`, `Last-Event-ID`, `If-Match` or `If-None-Match` names a state of another node after
  /// `judged`; returns nil if the journal does not have such a state either. Throws `behind` if the request has waited
  /// long enough, may not wait, or the journal cannot be queried.
  private func inquiry(
    about request: borrowing Request, after judged: Revision, _ store: Store
  ) throws(Problem) -> HandlerResponse? {
    guard let journal, let revision = Self.newestNamed(by: request, store.epoch), revision > judged else { return nil }
    let client = request.client
    if request.isHandledAgain, journal.bounds.last < revision, journal.silence < WriteTime.silence { return nil }
    guard !request.isHandledAgain, waits.hasRoom(for: client) else {
      throw Problem(.behind, "the store is at revision \(judged) and has not reached \(revision)")
    }
    request.keepBody()
    return .deferred { [waits] completion in
      waits.add(of: client, until: revision, present: { store.revision }) { completion.handleAgain() }
      // A revision that is known to exist needs no query.
      guard journal.bounds.last < revision else { return }
      Self.inquiries.async {
        guard (try? journal.refresh()) != nil, journal.bounds.last < revision else { return }
        completion.handleAgain()
      }
    }
  }

  /// Defers a request until this node has the records that other peers had appended when the request arrived. Returns
  /// nil for a request that has waited already or may not wait, and on a node that shares no journal.
  package func refreshed(for request: borrowing Request, _ store: Store) -> HandlerResponse? {
    let client = request.client
    guard let journal, !request.isHandledAgain, waits.hasRoom(for: client) else { return nil }
    request.keepBody()
    return .deferred { [waits] completion in
      let beginning = waits.present
      Self.inquiries.async {
        try? journal.refresh()
        waits.add(of: client, until: journal.bounds.last, since: beginning, present: { store.revision }) {
          completion.handleAgain()
        }
      }
    }
  }

  /// Throws `leader-unreachable`, or `store-unavailable` on a peer, if this node has had no contact for `seconds` with
  /// the leader, or with its database: tokens may have been revoked meanwhile. 0 means no limit.
  func checkRevocations(within seconds: Int) throws(Problem) {
    guard seconds > 0 else { return }
    let remedy = "tokens may have been revoked meanwhile (access.staleSeconds)"
    if let following, following.silenceMilliseconds >= UInt64(seconds) * 1_000 {
      throw Problem(
        .leaderUnreachable,
        "no news of the leader for \(seconds) s (this node follows \(following.plan.leader.client.address)); "
          + remedy)
    }
    if let journal, journal.silence >= .seconds(seconds) {
      throw Problem(.storeUnavailable, "the database has not answered for \(seconds) s; \(remedy)")
    }
  }
}

/// The state of a node that shares its journal with others, which write too (the specification, section 13).
private struct Peer {
  let journal: any SharedJournal
  let store: Store

  /// The number of revisions of other nodes that this node knows of and has not taken over yet.
  private var behind: UInt64 {
    let (last, revision) = (journal.bounds.last, store.revision)
    return last - min(last, revision)
  }

  /// The time for which the journal has not answered, in seconds; 0 while it does.
  private var silence: Int64 { journal.silence > WriteTime.silence ? journal.silence.components.seconds : 0 }

  /// Adds its members of `/v1/status`.
  func describe(in status: inout JSONObject) {
    status["role"] = .string("peer")
    status["behind"] = .integer(Int64(behind))
    status["behindSeconds"] = .integer(silence)
    status["pen"] = .string(journal.pen)
    if let cache = journal.cache?.journal { status["cached"] = .integer(Int64(cache.bounds.last)) }
  }

  /// Sets its metrics.
  func export(to registry: PrometheusRegistry) {
    registry.set(.peerBehind, to: Double(behind))
    registry.set(.peerSilence, to: Double(silence))
    registry.set(.peerPen, to: journal.hasPen ? 1 : 0)
    registry.set(.overtakenBatches, to: Double(store.overtakenBatches))
  }
}

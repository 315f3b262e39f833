import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// Opens a stream of one object, from the present state or from where an earlier stream ended.
struct ObjectStreamOpening: StreamOpening {
  /// The replays sent to resumed streams, by topic and by the revision from which they resumed.
  typealias ReplayCache = Locked<BoundedCache<ObjectReplay.Key, ObjectReplay>>

  private let request: ObjectStreamRequest
  private let observations: [Observation]
  private let key: ObjectTopic.Key
  private let services: StreamServices
  private let replays: ReplayCache
  /// The revision to resume from, or nil if the stream begins with the present state.
  private let after: Revision?
  /// The objects that the observed values were read through a moment ago. Nil if that is not known, or if one of the
  /// objects did not exist.
  private var objects: Set<Reference>?
  private var replay: ObjectReplay?
  /// The maximum number of steps to evaluate the first values.
  private let steps: Int
  /// The first values, if the stream begins with the present state and they take work to evaluate.
  private var values: ObservedValues?
  /// The collections that the observations read through.
  private var following = CollectionFollowing()
  /// True if the values are those of the present state, or if no values are needed.
  private var isCurrent = false
  /// True if the missed events are too long to send.
  private var hasOverflowed = false

  /// Creates the opening for a request. Evaluating the first values may take up to `steps` steps. Throws a problem if
  /// the request is invalid.
  init(
    _ request: ObjectStreamRequest, _ snapshot: Snapshot, _ services: StreamServices, _ replays: ReplayCache,
    steps: Int
  ) throws(Problem) {
    self.steps = steps
    self.request = request
    self.services = services
    self.replays = replays
    if let viewer = request.viewer, request.cursor == nil {
      _ = try snapshot.state.requireRecord(request.object, for: viewer)
    }
    observations = try services.observations(
      of: request.object, request.keyPaths, options: request.options, context: request.context,
      for: request.viewer, in: snapshot.state)
    key = ObjectTopic.Key(request, observations)
    after = services.resumption(from: request.cursor, snapshot).revision
    if after != nil { objects = observations.objects(in: snapshot.state) }
  }

  /// Follows the collections that the observations read through. Call this before the stream is opened. Throws
  /// `too-many-steps`.
  mutating func follow(in store: Store) throws(Problem) {
    do throws(ModelError) {
      try following.follow(observations, in: store, steps: steps)
    } catch {
      following.end(in: store)
      throw Problem(error)
    }
  }

  private var replayKey: ObjectReplay.Key? { after.map { ObjectReplay.Key(topic: key, after: $0) } }

  mutating func isReady(_ publication: borrowing Publication) -> Bool {
    if let after, after >= publication.snapshot.oldestResumable, !hasOverflowed {
      if let objects, publication.isUntouched(objects, after: after) { return true }
      return replay.map { publication.isNear($0.revision) } ?? false
    }
    isCurrent = areCurrent(publication)
    return isCurrent
  }

  /// Returns true if the first values are known, or can be read while writers wait.
  private mutating func areCurrent(_ publication: borrowing Publication) -> Bool {
    let snapshot = publication.snapshot
    let isPlain = observations.allSatisfy { $0.isPlain(in: snapshot.state) }
    guard !isPlain else { return true }
    let commits = publication.publishedHistory.commits(after: values?.revision ?? 0)
    return values?.bringUp(through: commits, to: snapshot.revision) ?? false
  }

  mutating func prepare(
    upTo history: PublishedHistory, in store: Store, _ isAbandoned: () -> Bool
  ) throws(Problem) {
    guard let after, let replayKey, after >= history.snapshot.oldestResumable, !hasOverflowed else {
      var values = self.values ?? ObservedValues(steps: steps)
      let needed = after != nil || request.options.contains(.initial) ? observations : []
      try Problem.translating(
        try values.evaluate(needed, in: history.snapshot.state, at: history.snapshot.revision))
      return self.values = values
    }
    if replay == nil { replay = replays.withLock { $0.take(replayKey) } }
    // A replay that can no longer be brought up to date is useless.
    if let known = replay?.revision, known < history.snapshot.oldestResumable { replay = nil }
    let limits = store.limits
    if replay == nil, let missed = store.missed(after: after, history) {
      replay = makeReplay(missed, limits)
    }
    if let known = replay?.revision {
      replay?.bringUp(
        through: history.commits(after: known), to: history.snapshot, limits: limits)
    }
    hasOverflowed = replay?.hasOverflowed ?? false
  }

  private func makeReplay(_ missed: MissedCommits, _ limits: StoreLimits) -> ObjectReplay {
    ObjectReplay(
      observations, missed, services.encoder, limits: limits,
      byteLimit: services.limits.replayBytes)
  }

  func keepResults(in store: Store) {
    following.end(in: store)
    guard let replay, let replayKey else { return }
    replays.withLock { $0.put(replay, for: replayKey, at: replay.revision, weight: replay.weight) }
  }

  // MARK: Under the lock

  mutating func open(in registry: StreamRegistry, _ publication: inout Publication) throws(Problem) -> EventStream {
    try registry.contents.withLock { contents throws(Problem) in
      let exists = publication.snapshot.state.exists(request.object, for: request.viewer)
      let topic: ObjectTopic =
        contents.topic(key)
        ?? ObjectTopic(key: key, observer: contents.makeObserver(), observations: observations, services: services)
      let beginning = try beginning(of: topic, publication)
      let account =
        topic.subscribers > 0
        ? nil : try services.reserve(observations.count * StreamWeight.observation, for: request.client)
      let channel = exists && !beginning.isFinished ? topic.channel : nil
      let stream = try services.open(
        for: request.client, prelude: beginning.text, channel: channel, overflow: request.overflow)
      if beginning.isFinished {
        services.hub.post([.endStream(stream.id, nil)], position: nil)
        contents.subscriptions[stream.id] = EndedObject(key)
        return stream
      }
      if topic.subscribers == 0 {
        topic.account = account
        publication.observers.add(observations, of: topic.observer, in: publication.snapshot.state)
      }
      contents.join(topic, stream.id, request.client)
      publication.observers.charge(topic.observer, to: QueryPayer(request.client))
      if beginning.isOwed {
        topic.owe(stream.id)
        let position = StreamPosition.state(at: publication.snapshot.revision).rawValue
        services.hub.post([.streamMisses(stream.id, position: position)], position: nil)
      }
      return stream
    }
  }

  /// Throws what opening the stream would throw, without opening it.
  mutating func check(_ publication: borrowing Publication) throws(Problem) {
    let topic = ObjectTopic(key: key, observer: ObserverID(0), observations: observations, services: services)
    _ = try beginning(of: topic, publication)
  }

  /// The text sent to a stream before any new event.
  private struct Beginning {
    var text: EventBuffer
    /// True if the text ends with the deletion of the object.
    var isFinished = false
    /// True if the state has yet to be sent.
    var isOwed = false
  }

  /// Returns the text sent to the stream before any new event. Throws `unknown-object`.
  private mutating func beginning(
    of topic: ObjectTopic, _ publication: borrowing Publication
  ) throws(Problem) -> Beginning {
    var text = services.prelude()
    let snapshot = publication.snapshot
    var resumption = services.resumption(from: request.cursor, snapshot)
    if case .after(let revision) = resumption {
      if objects == nil { objects = observations.objects(in: snapshot.state) }
      if let objects, publication.isUntouched(objects, after: revision),
        snapshot.state.exists(request.object, for: request.viewer)
      {
        // The untouched objects are as they were at that revision: there is nothing to send.
        text.append(EventEncoder.emptyBlock)
        return Beginning(text: text)
      }
      if let replay = replay(after: revision, publication) {
        if !replay.hasOverflowed {
          if replay.text.isEmpty { text.append(EventEncoder.emptyBlock) } else { text.append(replay.text) }
          return Beginning(text: text, isFinished: replay.isFinished)
        }
        resumption = .reset(.overflow)
      } else {
        resumption = .reset(.compacted)
      }
    }
    guard snapshot.state.exists(request.object, for: request.viewer) else {
      throw Problem(.unknownObject, "object \(request.object) does not exist", object: request.object)
    }
    if case .reset(let reason) = resumption {
      services.encoder.appendReset(reason, revision: snapshot.revision, to: &text)
    }
    let showsState = resumption != .fresh || request.options.contains(.initial)
    guard isCurrent || areCurrent(publication) else {
      text.append(EventEncoder.emptyBlock)
      return Beginning(text: text, isOwed: true)
    }
    if showsState { text.append(topic.initialEvent(snapshot, values)) } else { text.append(EventEncoder.emptyBlock) }
    return Beginning(text: text)
  }

  /// Returns the replay of the events after `revision`. Nil if the object did not exist then, or if the history no
  /// longer reaches back that far.
  private mutating func replay(after revision: Revision, _ publication: borrowing Publication) -> ObjectReplay? {
    let snapshot = publication.snapshot
    let limits = publication.limits
    if let known = replay {
      let commits = publication.history.commits(after: known.revision, present: snapshot.revision)
      replay?.bringUp(through: commits, to: snapshot, limits: limits)
    } else if let missed = MissedCommits(after: revision, publication.publishedHistory) {
      replay = makeReplay(missed, limits)
    }
    return replay.flatMap { $0.revision == snapshot.revision && !$0.isAbsent ? $0 : nil }
  }
}

extension [Observation] {
  /// Returns the objects that the observed values are read through. Nil if one of them does not exist, or if its
  /// observer may not read it.
  func objects(in state: ModelState) -> Set<Reference>? {
    guard allSatisfy({ state.exists($0.object, for: $0.viewer) }) else { return nil }
    var objects: Set<Reference> = []
    for observation in Set(map(\.withoutValues)) { objects.formUnion(observation.objects(in: state)) }
    return objects.allSatisfy { state.record($0) != nil } ? objects : nil
  }
}

extension StreamServices {
  /// Returns the observations of an object's key paths, or of its display keys, as `viewer` may read them. Throws
  /// `forbidden` for a path with a key that the viewer may not read, `unknown-entity`, `too-many-key-paths`, and the
  /// problem of a malformed path.
  func observations(
    of object: Reference, _ keyPaths: [String]?, options: ObservingOptions, context: EchoedText?,
    for viewer: Viewer?, in state: ModelState
  ) throws(Problem) -> [Observation] {
    let schema = state.schema
    let entity = try Problem.translating(try schema.requireEntity(of: object))
    let paths = try Problem.translating { () throws(ModelError) in
      guard let keyPaths else { return entity.display.filter { viewer?.mayRead($0, from: entity, in: schema) ?? true } }
      var paths: [ModelKeyPath] = []
      for text in keyPaths {
        let path = try schema.resolveObservable(text, from: entity)
        try viewer?.check(path, from: entity, of: object, in: schema)
        paths.append(path)
      }
      return paths
    }
    guard paths.count <= limits.keyPaths else {
      throw Problem(.tooManyKeyPaths, "\(paths.count) key paths exceed the limit of \(limits.keyPaths)")
    }
    return paths.map { path in
      Observation(
        object: object, keyPath: path, options: options, context: context?.text,
        viewer: viewer.flatMap { $0.seesAll(along: path, from: entity, in: schema) ? nil : $0 })
    }
  }
}

/// The encoded events sent to the streams of a topic after a revision, for streams that resume there. Brought up to
/// date when a stream is opened, and kept for the next stream.
struct ObjectReplay: Sendable {
  /// The identity of a replay.
  struct Key: Hashable, Sendable {
    let topic: ObjectTopic.Key
    let after: Revision
  }

  private var replay: Replay
  private let encoder: EventEncoder
  private(set) var text: EventBuffer
  /// True if the events end with the deletion of the object.
  private(set) var isFinished = false
  private var hasTooManyChanges = false
  /// True if the events exceed the limits. The text is then empty.
  var hasOverflowed: Bool { hasTooManyChanges || text.isTooLong }

  /// Creates the replay of missed commits.
  init(
    _ observations: [Observation], _ missed: MissedCommits, _ encoder: EventEncoder, limits: StoreLimits,
    byteLimit: Int
  ) {
    self.encoder = encoder
    var written = Written(text: encoder.text(limit: byteLimit))
    replay = Replay([(nil, observations)], missed, limits: limits) {
      written.append($0, encoder)
    }
    text = written.text
    take(written)
  }

  /// The last revision that the replay covers.
  var revision: Revision { replay.revision }

  /// True if the object did not exist at the revision that the stream resumes from.
  var isAbsent: Bool { !replay.absent.isEmpty }

  /// The approximate size in memory, in bytes.
  var weight: Int { text.count + 1024 }

  /// Extends the replay to the published state. Does nothing if the commits in between are not known.
  mutating func bringUp(through commits: [Commit]?, to snapshot: Snapshot, limits: StoreLimits) {
    guard let commits, !commits.isEmpty else { return }
    var written = Written(text: text)
    replay.bringUp(through: commits, to: snapshot.state, limits: limits) {
      written.append($0, encoder)
    }
    take(written)
  }

  private mutating func take(_ written: Written) {
    text = written.text
    isFinished = isFinished || written.isFinished
    hasTooManyChanges = hasTooManyChanges || written.hasTooManyChanges
  }

  /// The events written so far. Each event is encoded at once, so that the missed events are never held as values.
  private struct Written {
    var text: EventBuffer
    var isFinished = false
    var hasTooManyChanges = false

    mutating func append(_ event: ObserverEvent, _ encoder: EventEncoder) {
      isFinished = isFinished || !event.gone.isEmpty
      hasTooManyChanges = hasTooManyChanges || event.hasOverflowed
      if !hasTooManyChanges { encoder.append(StreamEvent(event), to: &text) }
    }
  }
}

/// The subscription of a stream that resumes at a revision before its object was deleted. The stream receives the
/// events up to the deletion, observes nothing, and ends.
private final class EndedObject: Subscription {
  private let key: ObjectTopic.Key

  init(_ key: ObjectTopic.Key) { self.key = key }

  func describe(in body: inout JSONObject) { key.describe(observations: 0, in: &body) }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {}
}

package import HTTPServer
package import KeyValueModel
package import KeyValueObserving
internal import Locking
package import ModelStore

/// Streams of one object.
extension StreamRegistry {
  /// What a client asks for with `GET /v1/objects/…` as a stream.
  package struct TopicRequest: Sendable {
    /// The object.
    package let object: Reference
    /// The key paths; nil for the display keys.
    package let keyPaths: [String]?
    /// What is told.
    package let options: ObservingOptions
    /// Given back with every change.
    package let context: EchoedText?
    /// The cursor to go on from, as it came.
    package let cursor: String?
    /// What becomes of it when its reader is slow.
    package let overflow: OverflowPolicy
  }

  /// Opens a stream. Throws `unknown-object` and what is wrong with the key paths, before anything is registered, and
  /// `too-many-streams`.
  package func open(_ request: TopicRequest, _ publication: inout Publication) throws(Problem) -> EventStream {
    var resumed = ResumedTopic()
    return try open(request, &resumed, &publication)
  }

  /// The same, with what was worked out before for a client that comes back.
  func open(
    _ request: TopicRequest, _ resumed: inout ResumedTopic, _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    try contents.withLock { contents throws(Problem) in
      let observations = try observations(request, publication.snapshot.state.schema)
      let key = Topic.Key(request, observations)
      let exists = publication.snapshot.state.record(request.object) != nil
      let topic = contents.topics[key] ?? Topic(key: key, observer: contents.makeObserver(), observations: observations)
      var prelude = Array(retryLine.utf8)
      let isOver = try appendBeginning(request, topic, &resumed, publication, to: &prelude)
      let stream = try openStream(prelude, exists && !isOver ? topic.channel : nil, overflow: request.overflow)
      if isOver {
        hub.post([.endStream(stream.id, nil)], position: nil)
        contents.streams[stream.id] = .over(key, secret: random())
        return stream
      }
      if topic.members == 0 {
        publication.observers.add(observations, of: topic.observer, in: publication.snapshot.state)
        contents.topics[key] = topic
        contents.topicsByObserver[topic.observer] = topic
      }
      topic.members += 1
      contents.streams[stream.id] = .topic(topic, secret: random())
      return stream
    }
  }

  func openStream(
    _ prelude: [UInt8], _ channel: ChannelID?, overflow: OverflowPolicy
  ) throws(Problem) -> EventStream {
    try Self.translating { () throws(StreamHubError) in
      try hub.open(prelude: prelude, channel: channel, overflow: overflow)
    }
  }

  /// What `body` gives, or the hub's refusal as a problem.
  static func translating(_ body: () throws(StreamHubError) -> EventStream) throws(Problem) -> EventStream {
    do throws(StreamHubError) {
      return try body()
    } catch {
      switch error {
      case .tooManyStreams: throw Problem(.tooManyStreams, "as many streams are open as the server allows")
      case .draining: throw Problem(.draining, "the server is about to stop")
      }
    }
  }

  func observations(_ request: TopicRequest, _ schema: Schema) throws(Problem) -> [Observation] {
    try observations(
      request.object, request.keyPaths, options: request.options, context: request.context, schema)
  }

  /// The observations of an object's key paths, or of its display keys. Throws `unknown-entity`, what is wrong with a
  /// path, and `too-many-key-paths`.
  func observations(
    _ object: Reference, _ keyPaths: [String]?, options: ObservingOptions, context: EchoedText?, _ schema: Schema
  ) throws(Problem) -> [Observation] {
    let paths = try Problem.translating { () throws(ModelError) in
      let entity = try schema.requireEntity(object.entity)
      guard let keyPaths else { return entity.display }
      var paths: [ModelKeyPath] = []
      for text in keyPaths { paths.append(try schema.resolveObservable(text, from: entity)) }
      return paths
    }
    guard paths.count <= limits.keyPaths else {
      throw Problem(.tooManyKeyPaths, "\(paths.count) key paths; there may be \(limits.keyPaths)")
    }
    return paths.map { Observation(object: object, keyPath: $0, options: options, context: context?.text) }
  }

  // MARK: The beginning

  /// Throws what `open` would throw of the request itself; opens nothing.
  package func check(_ request: TopicRequest, _ publication: borrowing Publication) throws(Problem) {
    let observations = try observations(request, publication.snapshot.state.schema)
    let key = Topic.Key(object: request.object, keyPaths: [], options: request.options, context: request.context)
    var unread: [UInt8] = []
    let topic = Topic(key: key, observer: ObserverID(0), observations: observations)
    var resumed = ResumedTopic()
    _ = try appendBeginning(request, topic, &resumed, publication, to: &unread)
  }

  /// Appends what the stream is told before anything new happens. True where that ends with the object's end.
  private func appendBeginning(
    _ request: TopicRequest, _ topic: Topic, _ resumed: inout ResumedTopic, _ publication: borrowing Publication,
    to prelude: inout [UInt8]
  ) throws(Problem) -> Bool {
    let present = publication.snapshot.revision
    var resumption = Resumption(
      cursor: request.cursor, epoch: encoder.epoch, oldest: publication.snapshot.oldestResumable, present: present)
    if case .after(let revision) = resumption {
      if isUntouched(topic, &resumed, after: revision, publication) {
        prelude.append(UInt8(ascii: "\n"))
        return false
      }
      if let replay = replay(topic, &resumed, after: revision, publication) {
        if !replay.hasOverflowed {
          prelude += replay.bytes.isEmpty ? [UInt8(ascii: "\n")] : replay.bytes
          return replay.isOver
        }
        resumption = .reset(.overflow)
      } else {
        resumption = .reset(.compacted)
      }
    }
    guard publication.snapshot.state.record(request.object) != nil else {
      throw Problem(.unknownObject, "there is no object \(request.object)", object: request.object)
    }
    if case .reset(let reason) = resumption { encoder.appendReset(reason, revision: present, to: &prelude) }
    if resumption != .fresh || request.options.contains(.initial) {
      prelude.append(contentsOf: initialEvent(topic, publication.snapshot))
    } else {
      prelude.append(UInt8(ascii: "\n"))
    }
    return false
  }

  /// Whether the topic was told nothing after `revision`: what was not touched since then is now what it was then.
  private func isUntouched(
    _ topic: Topic, _ resumed: inout ResumedTopic, after revision: Revision, _ publication: borrowing Publication
  ) -> Bool {
    if resumed.objects == nil { resumed.objects = objects(read: topic.observations, publication.snapshot.state) }
    return resumed.objects.map { publication.isUntouched($0, after: revision) } ?? false
  }

  /// What the topic was told after `revision`, nil where the object did not exist then, or that is not known any more.
  private func replay(
    _ topic: Topic, _ resumed: inout ResumedTopic, after revision: Revision, _ publication: borrowing Publication
  ) -> TopicReplay? {
    let snapshot = publication.snapshot
    let changesPerObserver = publication.limits.changesPerObserver
    if let known = resumed.replay {
      let commits = publication.history.commits(after: known.revision, present: snapshot.revision)
      resumed.replay?.bringUp(through: commits, to: snapshot, changesPerObserver: changesPerObserver)
    } else {
      resumed.replay = MissedCommits(after: revision, publication.publishedHistory).map {
        TopicReplay(
          topic.observations, $0, encoder, changesPerObserver: changesPerObserver, byteLimit: limits.replayBytes)
      }
    }
    return resumed.replay.flatMap { $0.revision == snapshot.revision && !$0.isAbsent ? $0 : nil }
  }

  private func initialEvent(_ topic: Topic, _ snapshot: Snapshot) -> [UInt8] {
    if let event = topic.initialEvent, event.revision == snapshot.revision { return event.bytes }
    let changes = topic.observations.map { $0.initialChange(cell: nil, in: snapshot.state) }
    var bytes: [UInt8] = []
    encoder.appendChange(changes, revision: snapshot.revision, isInitial: true, to: &bytes)
    topic.initialEvent = (snapshot.revision, bytes)
    return bytes
  }
}

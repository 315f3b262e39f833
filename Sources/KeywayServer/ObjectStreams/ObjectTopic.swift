import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// The observations that streams with the same request of one object share.
final class ObjectTopic: Topic {
  struct Key: Hashable, Sendable {
    let object: Reference
    let keyPaths: [String]
    let options: ObservingOptions
    let context: EchoedText?
    /// The viewer whose read rules apply, or nil if everything observed may be read.
    let viewer: Viewer?

    /// Creates the key of a request.
    init(_ request: ObjectStreamRequest, _ observations: [Observation]) {
      object = request.object
      keyPaths = observations.map(\.keyPath.text)
      options = request.options
      context = request.context
      viewer = observations.lazy.compactMap(\.viewer).first
    }

    func describe(observations: Int, in body: inout JSONObject) {
      body["kind"] = .string("object")
      body["object"] = .reference(object)
      body["keyPaths"] = .array(keyPaths.map(Value.string))
      body["options"] = .array(options.optionNames.map(Value.string))
      body["context"] = context.map { .string($0.text) } ?? .null
      body["observations"] = .integer(Int64(observations))
    }
  }

  let key: Key
  let observer: ObserverID
  let services: StreamServices
  let observations: [Observation]
  var subscribers = 0
  var clients: [StreamID: ClientAddress] = [:]
  /// The memory reserved for the observations, charged to the first client that opened a stream.
  var account: MemoryReservation?
  /// The streams with slow readers, and the changes that they missed.
  private var lagging = LaggingSubscribers()
  /// The first event, encoded for the last revision at which a stream began.
  private var initialEvent: (revision: Revision, text: EventBuffer)?

  init(key: Key, observer: ObserverID, observations: [Observation], services: StreamServices) {
    self.key = key
    self.observer = observer
    self.observations = observations
    self.services = services
  }

  var observationCount: Int { subscribers * observations.count }
  var queries: [Query] { [] }

  func context(ofCell cell: String?) -> String? { nil }

  func describe(in body: inout JSONObject) { key.describe(observations: observations.count, in: &body) }

  /// Returns the present state as the first event of a stream. `values` are the values that are already known.
  func initialEvent(_ snapshot: Snapshot, _ values: ObservedValues?) -> EventBuffer {
    if let event = initialEvent, event.revision == snapshot.revision { return event.text }
    let reader: any ObjectReader = values?.reader(of: snapshot.state) ?? snapshot.state
    let text = services.encoder.encodedState(observations, in: reader, at: snapshot.revision)
    initialEvent = text.count <= services.keptEventBytes ? (snapshot.revision, text) : nil
    return text
  }

  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery? {
    services.countNotifications(event.changes.count * subscribers)
    lagging.absorb(event.changes)
    guard let bytes = services.encoder.bytes(of: event) else {
      return miss(event.revision)
    }
    guard !event.gone.isEmpty else { return .channel(channel, bytes) }
    contents.forget(self)
    return .endChannel(channel, bytes)
  }

  func missed(_ event: ObserverEvent) -> Delivery {
    lagging.forgetMissed()
    return miss(event.revision)
  }

  func unregister(_ publication: inout Publication) { publication.observers.remove(observer) }

  // MARK: Slow readers

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    guard !lagging.isOwed(id) else { return }
    guard let missed = missed(after: firstMissed.lastNotified, publication) else {
      return lagging.add(id, missed: nil)
    }
    do throws(Problem) {
      let account = try services.reserve(missed.deliveredBytes, for: clients[id] ?? .unknown)
      lagging.add(id, missed: missed, account)
    } catch {
      // There is no memory for what the stream has: it receives the whole state again.
      lagging.add(id, missed: nil)
    }
  }

  /// Makes a stream that was just opened receive the whole state as soon as it has been evaluated.
  func owe(_ id: StreamID) { lagging.add(id, missed: nil) }

  func endLag(_ id: StreamID) { lagging.remove(id) }

  /// Returns the changes that an observer was notified of after a revision. Nil if they are no longer known, or if
  /// evaluating them would hold up the writer.
  private func missed(after revision: Revision, _ publication: borrowing Publication) -> MissedChanges? {
    guard let delivered = DeliveredState(after: revision, observedBy: observations, publication) else { return nil }
    var missed = MissedChanges(observations, in: delivered.reader)
    var isComplete = true
    let absent = publication.replay([(nil, observations)], after: revision) { event in
      isComplete = isComplete && !event.hasOverflowed
      missed.absorb(event.changes, gone: nil)
    }
    return absent?.isEmpty == true && isComplete ? missed : nil
  }

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    guard lagging.contains(id) else { return nil }
    let snapshot = publication.snapshot
    if lagging.hasMissedNothing(id) {
      lagging.remove(id)
      services.postCatchUp(services.encoder.text(), to: id, at: snapshot.revision)
      return nil
    }
    var values = ObservedValues(steps: ObservedValues.stepsUnderLock)
    do throws(ModelError) {
      try values.evaluate(observations, in: snapshot.state, at: snapshot.revision)
    } catch {
      return catchUpWork(id, snapshot)
    }
    let reader = values.reader(of: snapshot.state)
    var text: EventBuffer
    if let missed = lagging.missed(by: id) {
      var event = StreamEvent(revision: snapshot.revision)
      event.changes = missed.coalesced(observations, cell: nil, in: reader)
      text = services.encoder.text()
      services.encoder.append(event, to: &text)
      // The present state has no old values.
      if text.isTooLong { text = services.encoder.encodedState(observations, in: reader, at: snapshot.revision) }
    } else {
      text = services.encoder.encodedState(observations, in: reader, at: snapshot.revision)
    }
    lagging.remove(id)
    services.postCatchUp(text, to: id, at: snapshot.revision)
    return nil
  }

  /// Returns the work that sends a stream the present state, if evaluating it would keep writers waiting too long. The
  /// stream goes on missing what is committed meanwhile.
  private func catchUpWork(_ id: StreamID, _ snapshot: Snapshot) -> CatchUpWork {
    lagging.add(id, missed: nil, isTold: true)
    return { [services, observations] store, _ in
      var values = ObservedValues(steps: store.limits.queryOpeningCost)
      do throws(ModelError) {
        try values.evaluate(observations, in: snapshot.state, at: snapshot.revision)
      } catch {
        return services.hub.post([.endStream(id, services.encoder.closingEvent(.overflow))], position: nil)
      }
      let reader = values.reader(of: snapshot.state)
      let text = services.encoder.encodedState(observations, in: reader, at: snapshot.revision)
      services.hub.post([services.catchUp(text, of: id, isLast: false)], position: nil)
    }
  }
}

extension EventEncoder {
  /// Returns the first event of a stream: the values of an object's observations in a state.
  fileprivate func encodedState(
    _ observations: [Observation], in reader: any ObjectReader, at revision: Revision
  ) -> EventBuffer {
    let changes = observations.lazy.map { $0.initialChange(cell: nil, in: reader) }
    var text = text()
    appendChange(changes, revision: revision, isInitial: true, to: &text)
    return text
  }
}

/// The streams of one topic whose readers are too slow, with the changes that each has missed. An event is merged once
/// for all of them. A stream that begins to lag begins a new segment, unless no event came since the last one began; it
/// has missed all segments since.
struct LaggingSubscribers {
  private struct Member {
    /// The changes that it missed before its first segment, or nil if they are not known.
    var missed: MissedChanges?
    let firstSegment: Int
    /// True if the state at the beginning of that segment is being sent to it.
    var isTold = false
    /// The memory reserved for the missed changes.
    let account: MemoryReservation?
  }

  /// The changes between one stream's beginning to lag and the next one's.
  private struct Segment {
    let number: Int
    /// The number of streams that began to lag with this segment: at least one, so that there are never more segments
    /// than members.
    var members = 1
    var missed = MissedChanges(since: DeliveredValues())
  }

  private var members: [StreamID: Member] = [:]
  /// The segments, in the order of their numbers.
  private var segments: [Segment] = []
  private var nextSegment = 0

  /// The number of segments, which is never larger than the number of members.
  var segmentCount: Int { segments.count }

  /// Merges the changes of one commit into the last segment.
  mutating func absorb(_ changes: [Change]) {
    guard let last = segments.indices.last else { return }
    segments[last].missed.absorb(changes, gone: nil)
  }

  /// Forgets the missed changes of all streams: each of them has to receive the whole state again.
  mutating func forgetMissed() {
    for id in members.keys {
      members[id]?.missed = nil
      members[id]?.isTold = false
    }
  }

  /// Adds a stream that begins to lag. `missed` are the changes that it missed until now, or nil if they are not known
  /// and it has to receive the whole state again. With `isTold`, that state is already being sent.
  mutating func add(
    _ id: StreamID, missed: MissedChanges?, isTold: Bool = false, _ account: MemoryReservation? = nil
  ) {
    remove(id)
    if let last = segments.indices.last, segments[last].missed.commits == 0 {
      segments[last].members += 1
      members[id] = Member(missed: missed, firstSegment: segments[last].number, isTold: isTold, account: account)
    } else {
      segments.append(Segment(number: nextSegment))
      members[id] = Member(missed: missed, firstSegment: nextSegment, isTold: isTold, account: account)
      nextSegment += 1
    }
  }

  /// Removes a stream that no longer lags, or has ended.
  mutating func remove(_ id: StreamID) {
    guard let member = members.removeValue(forKey: id), let index = index(of: member.firstSegment) else { return }
    segments[index].members -= 1
    guard segments[index].members == 0 else { return }
    // The streams of earlier segments have still missed its changes.
    let segment = segments.remove(at: index)
    if index > 0 { segments[index - 1].missed.merge(segment.missed) }
  }

  /// Returns true if a stream lags.
  func contains(_ id: StreamID) -> Bool { members[id] != nil }

  /// Returns true if a stream has to receive the whole state again.
  func isOwed(_ id: StreamID) -> Bool { members[id].map { $0.missed == nil && !$0.isTold } ?? false }

  /// Returns true if a stream was sent the state and has missed nothing since.
  fileprivate func hasMissedNothing(_ id: StreamID) -> Bool {
    guard let member = members[id], member.isTold, let first = index(of: member.firstSegment) else { return false }
    return segments[first...].allSatisfy { $0.missed.commits == 0 }
  }

  /// Returns the changes that a stream has missed. Nil if they are not known, or if the stream does not lag.
  func missed(by id: StreamID) -> MissedChanges? {
    guard let member = members[id], var missed = member.missed, let first = index(of: member.firstSegment) else {
      return nil
    }
    for segment in segments[first...] { missed.merge(segment.missed) }
    return missed
  }

  private func index(of number: Int) -> Int? {
    var range = segments.indices
    while !range.isEmpty {
      let middle = range.lowerBound + range.count / 2
      if segments[middle].number == number { return middle }
      range = segments[middle].number < number ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return nil
  }
}

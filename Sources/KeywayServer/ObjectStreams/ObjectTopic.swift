import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// What streams of one object observe that ask for the same.
final class ObjectTopic: Topic {
  struct Key: Hashable, Sendable {
    let object: Reference
    let keyPaths: [String]
    let options: ObservingOptions
    let context: EchoedText?
    /// Who observes, where not everything that is observed may be read.
    let viewer: Viewer?

    /// The key of what a request asks for.
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
  /// What the ledger has for the observations, on account of the first that asked.
  var account: MemoryReservation?
  /// What those streams have missed whose readers are too slow.
  private var lagging = LaggingSubscribers()
  /// The first event as it was encoded for the last revision at which a stream began.
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

  /// The present state as the first event of a stream. `values` are those that are known of it.
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
      // What it had cannot be remembered: it receives the whole state anew.
      lagging.add(id, missed: nil)
    }
  }

  /// Has a stream that was just opened receive the whole state as soon as that has been worked out.
  func owe(_ id: StreamID) { lagging.add(id, missed: nil) }

  func endLag(_ id: StreamID) { lagging.remove(id) }

  /// The changes that an observer was notified of after a revision; nil if that is no longer known, or would hold up
  /// the writer.
  private func missed(after revision: Revision, _ publication: borrowing Publication) -> PendingChanges? {
    guard let delivered = DeliveredState(after: revision, observedBy: observations, publication) else { return nil }
    var missed = PendingChanges(observations, in: delivered.reader)
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

  /// The catching up of a stream of which too much has to be worked out while writers wait: it is sent the state as it
  /// is now, and goes on missing what comes meanwhile.
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
  /// The first event of a stream: what observations of an object see in a state.
  fileprivate func encodedState(
    _ observations: [Observation], in reader: any ObjectReader, at revision: Revision
  ) -> EventBuffer {
    let changes = observations.lazy.map { $0.initialChange(cell: nil, in: reader) }
    var text = text()
    appendChange(changes, revision: revision, isInitial: true, to: &text)
    return text
  }
}

/// The streams of one topic whose readers are too slow, with what each has missed. An event is taken in once for all of
/// them: a stream that begins to lag begins a new segment, unless no event came since the last one began, and in the
/// end has missed all segments since.
struct LaggingSubscribers {
  private struct Member {
    /// What it missed before its first segment.
    var missed: PendingChanges?
    let firstSegment: Int
    /// True if it is being told the state in which that began.
    var isTold = false
    /// What the ledger has for that.
    let account: MemoryReservation?
  }

  /// What came between one beginning to lag and the next.
  private struct Segment {
    let number: Int
    /// How many begin with it: at least one, so that there are never more segments than members.
    var members = 1
    var missed = PendingChanges(since: DeliveredValues())
  }

  private var members: [StreamID: Member] = [:]
  /// In the order of their numbers.
  private var segments: [Segment] = []
  private var nextSegment = 0

  /// How many segments are kept apart: never more than there are members.
  var segmentCount: Int { segments.count }

  /// Takes in what one commit did to what the topic observes.
  mutating func absorb(_ changes: [Change]) {
    guard let last = segments.indices.last else { return }
    segments[last].missed.absorb(changes, gone: nil)
  }

  /// What all of them have missed is not known any more.
  mutating func forgetMissed() {
    for id in members.keys {
      members[id]?.missed = nil
      members[id]?.isTold = false
    }
  }

  /// A stream begins to lag. `missed` is what it has missed until now; nil where that is not known, and it will have to
  /// receive the whole state anew. With `isTold` it is being sent that already.
  mutating func add(
    _ id: StreamID, missed: PendingChanges?, isTold: Bool = false, _ account: MemoryReservation? = nil
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

  /// A stream lags no longer, or is over.
  mutating func remove(_ id: StreamID) {
    guard let member = members.removeValue(forKey: id), let index = index(of: member.firstSegment) else { return }
    segments[index].members -= 1
    guard segments[index].members == 0 else { return }
    // A stream that began before it goes on missing what it has.
    let segment = segments.remove(at: index)
    if index > 0 { segments[index - 1].missed.merge(segment.missed) }
  }

  /// Whether a stream lags.
  func contains(_ id: StreamID) -> Bool { members[id] != nil }

  /// True if a stream receives the whole state anew.
  func isOwed(_ id: StreamID) -> Bool { members[id].map { $0.missed == nil && !$0.isTold } ?? false }

  /// True if a stream that was told the state has missed nothing since.
  fileprivate func hasMissedNothing(_ id: StreamID) -> Bool {
    guard let member = members[id], member.isTold, let first = index(of: member.firstSegment) else { return false }
    return segments[first...].allSatisfy { $0.missed.commits == 0 }
  }

  /// What a stream has missed; nil where that is not known, or where it does not lag.
  func missed(by id: StreamID) -> PendingChanges? {
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

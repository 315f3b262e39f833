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
  private var initialEvent: (revision: Revision, text: EventText)?

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
  func initialEvent(_ snapshot: Snapshot, _ values: ObservedValues?) -> EventText {
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
    var text: EventText
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
  ) -> EventText {
    let changes = observations.lazy.map { $0.initialChange(cell: nil, in: reader) }
    var text = text()
    appendChange(changes, revision: revision, isInitial: true, to: &text)
    return text
  }
}

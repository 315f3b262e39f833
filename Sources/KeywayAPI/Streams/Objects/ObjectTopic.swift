import HTTPServer
import KeyValueModel
import KeyValueObserving
import ModelStore

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

  /// The present state as the first event of a stream.
  func initialEvent(_ snapshot: Snapshot) -> EventText {
    if let event = initialEvent, event.revision == snapshot.revision { return event.text }
    let text = encodedState(snapshot)
    initialEvent = text.count <= services.keptEventBytes ? (snapshot.revision, text) : nil
    return text
  }

  private func encodedState(_ snapshot: Snapshot) -> EventText {
    let changes = observations.lazy.map { $0.initialChange(cell: nil, in: snapshot.state) }
    var text = services.encoder.text()
    services.encoder.appendChange(changes, revision: snapshot.revision, isInitial: true, to: &text)
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

  func missed(_ revision: Revision) -> Delivery {
    lagging.forgetMissed()
    return miss(revision)
  }

  func unregister(_ publication: inout Publication) { publication.observers.remove(observer) }

  // MARK: Slow readers

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
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

  func endLag(_ id: StreamID) { lagging.remove(id) }

  /// What an observer was notified of after a revision; nil where that is no longer known.
  private func missed(after revision: Revision, _ publication: borrowing Publication) -> PendingChanges? {
    guard let past = publication.past(after: revision) else { return nil }
    var missed = PendingChanges(observations, in: past)
    var isComplete = true
    let absent = publication.replay([(nil, observations)], after: revision) { event in
      isComplete = isComplete && !event.hasOverflowed
      missed.absorb(event.changes, gone: nil)
    }
    return absent?.isEmpty == true && isComplete ? missed : nil
  }

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> (@Sendable () -> Void)? {
    guard lagging.contains(id) else { return nil }
    let snapshot = publication.snapshot
    var text: EventText
    if let missed = lagging.missed(by: id) {
      var event = StreamEvent(revision: snapshot.revision)
      event.changes = missed.coalesced(observations, cell: nil, in: snapshot.state)
      text = services.encoder.text()
      services.encoder.append(event, to: &text)
      // The present state has no old values.
      if text.isTooLong { text = encodedState(snapshot) }
    } else {
      text = encodedState(snapshot)
    }
    lagging.remove(id)
    services.postCatchUp(text, to: id, at: snapshot.revision)
    return nil
  }
}

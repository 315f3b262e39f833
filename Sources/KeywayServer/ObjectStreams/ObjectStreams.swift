import HTTPServer
import HTTPTypes
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// Opens streams of one object, and keeps for a while what resuming streams were sent: a crowd that was cut off
/// together comes back together.
final class ObjectStreams: Sendable {
  /// How many revisions old a kept replay may become: it keeps the objects of its time in memory.
  private static let replayAge: Revision = 1000

  private let registry: StreamRegistry
  private let replays: ObjectStreamOpening.ReplayCache

  /// Streams of a registry.
  init(_ registry: StreamRegistry) {
    self.registry = registry
    replays = Locked(BoundedCache(weightLimit: registry.services.limits.resumedBytes))
  }

  /// Opens a stream. Throws `unknown-object`, what is wrong with the key paths, and `too-many-streams`, before anything
  /// is registered. Throws `too-many-steps` where its first values take more than `steps`, those of a request by
  /// default.
  func open(
    _ request: ObjectStreamRequest, in store: Store, steps: Int? = nil, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: min(steps ?? .max, store.limits.queryOpeningCost))
    try opening.follow(in: store)
    return try registry.open(opening, in: store, isAbandoned)
  }

  /// Throws what `open` would throw of the request itself; opens nothing.
  func check(_ request: ObjectStreamRequest, in store: Store) throws(Problem) {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: ObservedValues.stepsUnderLock)
    try store.withPublication { publication throws(Problem) in try opening.check(publication) }
  }

  /// Forgets replays that are old by now.
  func forgetReplays(at present: Revision) {
    guard present > Self.replayAge else { return }
    replays.withLock { $0.forget(before: present - Self.replayAge) }
  }
}

/// What a client asks for with `GET /v1/objects/{Entity}/{id}` or `…/{keyPath}` as a stream.
struct ObjectStreamRequest: Sendable {
  /// The object.
  let object: Reference
  /// The key paths; nil for the display keys.
  let keyPaths: [String]?
  /// What the subscriber is notified of.
  let options: ObservingOptions
  /// Given back with every change.
  let context: EchoedText?
  /// The cursor to go on from, as it came.
  let cursor: String?
  /// What becomes of the stream when its reader is slow.
  let overflow: OverflowPolicy
  /// Who asks.
  let client: ClientAddress
  /// What they may read; nil for everything.
  let viewer: Viewer?
}

/// `GET` of an object, and of key paths, for a client that accepts an event stream.
struct ObjectStreamHandlers: Sendable {
  let store: Store
  let streams: ObjectStreams
  /// Where streams wait for their turn whose first values take work, and those that resume.
  let openings: OpeningQueue
  let resumptions: OpeningQueue

  /// `GET /v1/objects/{Entity}/{id}`: its display keys.
  func openObject(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try open(keyPaths: nil, request, context)
  }

  /// `GET /v1/objects/{Entity}/{id}/{keyPath}`.
  func openKeyPaths(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try open(keyPaths: context.keyPaths, request, context)
  }

  private func open(
    keyPaths: [String]?, _ request: borrowing Request, _ context: RequestContext
  ) throws(Problem) -> HandlerResponse {
    let target = context.target
    let object = try context.reference(in: store.schema)
    try context.checkParameters()
    var options: ObservingOptions = [.new, .initial]
    if let names = target.list("options") {
      options = try ObservingOptions(names: names == [""] ? [] : names, mistake: .malformedQuery)
    }
    let asked = ObjectStreamRequest(
      object: object, keyPaths: keyPaths, options: options, context: try target.context(),
      cursor: target.cursor(of: request), overflow: try target.overflow(), client: request.client,
      viewer: context.viewer)
    if request.method == .head {
      try streams.check(asked, in: store)
      return .response(Response(streamHead: .eventStream))
    }
    if asked.cursor == nil {
      do throws(Problem) {
        let stream = try streams.open(asked, in: store, steps: ObservedValues.stepsUnderLock)
        return .stream(stream, fields: .eventStream)
      } catch {
        // As with other readings, one that takes long is begun anew in its turn.
        guard error.code == .tooManySteps else { throw error }
      }
    }
    return (asked.cursor == nil ? openings : resumptions).response(to: request.client) {
      [streams, store] isAbandoned throws(Problem) in
      try streams.open(asked, in: store, isAbandoned)
    }
  }
}

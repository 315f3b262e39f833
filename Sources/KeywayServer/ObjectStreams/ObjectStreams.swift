import HTTPServer
import HTTPTypes
import KeyValueModel
import KeyValueObserving
import Store
import Support

/// Opens streams of one object, and keeps for a while the events sent to resumed streams: clients that lost their
/// connections together come back together.
final class ObjectStreams: Sendable {
  /// The maximum age of a kept replay, in revisions. A replay keeps the objects of its time in memory.
  private static let replayAge: Revision = 1000

  private let registry: StreamRegistry
  private let replays: ObjectStreamOpening.ReplayCache

  /// Creates the streams of a registry.
  init(_ registry: StreamRegistry) {
    self.registry = registry
    replays = Locked(BoundedCache(weightLimit: registry.services.limits.resumedBytes))
  }

  /// Opens a stream. Throws `unknown-object`, `too-many-streams`, and the problem of an invalid key path, before
  /// anything is registered. Throws `too-many-steps` if evaluating its first values takes more than `steps` steps, by
  /// default as many as a request may take.
  func open(
    _ request: ObjectStreamRequest, in store: Store, steps: Int? = nil, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: min(steps ?? .max, store.limits.queryOpeningCost))
    try opening.follow(in: store)
    return try registry.open(opening, in: store, isAbandoned)
  }

  /// Throws what `open` would throw about the request itself, without opening a stream.
  func check(_ request: ObjectStreamRequest, in store: Store) throws(Problem) {
    var opening = try ObjectStreamOpening(
      request, store.snapshot, registry.services, replays, steps: ObservedValues.stepsUnderLock)
    try store.withPublication { publication throws(Problem) in try opening.check(publication) }
  }

  /// Discards the replays that are older than `replayAge`.
  func forgetReplays(at present: Revision) {
    guard present > Self.replayAge else { return }
    replays.withLock { $0.forget(before: present - Self.replayAge) }
  }
}

/// A request for a stream with `GET /v1/objects/{Entity}/{id}` or `…/{keyPath}`.
struct ObjectStreamRequest: Sendable {
  /// The object.
  let object: Reference
  /// The key paths, or nil for the display keys.
  let keyPaths: [String]?
  /// The contents of notifications: old and new values, and the initial state.
  let options: ObservingOptions
  /// The text of the client that every change repeats.
  let context: EchoedText?
  /// The cursor to resume from, as received.
  let cursor: String?
  /// The policy for a slow reader.
  let overflow: OverflowPolicy
  /// The address of the client.
  let client: ClientAddress
  /// The viewer whose read rules apply, or nil if none do.
  let viewer: Viewer?
}

/// `GET` of an object, and of key paths, for a client that accepts an event stream.
struct ObjectStreamHandlers: Sendable {
  let store: Store
  let streams: ObjectStreams
  /// The queues of streams whose first values take work, and of streams that resume.
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
        // As with other reads, one that takes long starts over in the queue.
        guard error.code == .tooManySteps else { throw error }
      }
    }
    return (asked.cursor == nil ? openings : resumptions).response(to: request.client) {
      [streams, store] isAbandoned throws(Problem) in
      try streams.open(asked, in: store, isAbandoned)
    }
  }
}

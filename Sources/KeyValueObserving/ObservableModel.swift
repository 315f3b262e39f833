public import KeyValueModel

/// A model with its observers in one process: key-value coding and observing as a library, without server or network.
///
/// Not Sendable: it belongs to its owner, and calls the handlers on the thread that commits, after the commit, in the
/// order of registration. A handler may read and observe; it must not commit.
public final class ObservableModel {
  /// An observation that ends when it is asked to. Dropping it does not end anything.
  public struct Token: Hashable, Sendable {
    fileprivate let observer: ObserverID
  }

  /// Called with what one commit did.
  public typealias Handler = (ObserverEvent) -> Void

  private var model: Model
  private var index = ObserverIndex()
  private var handlers: [ObserverID: Handler] = [:]
  private var nextObserver: UInt64 = 0

  /// A model without objects.
  public init(schema: Schema) {
    model = Model(schema: schema)
  }

  /// The objects as they stand.
  public var state: ModelState { model.state }

  /// The last committed transaction.
  public var revision: Revision { model.revision }

  /// How many observations there are.
  public var observationCount: Int { index.count }

  /// The value for a key path of an object (KVC guide, `valueForKeyPath:`).
  public func value(of object: Reference, forKeyPath text: String) throws(ModelError) -> Value {
    let path = try model.schema.resolve(text, from: state.requireRecord(object).entity)
    return state.value(of: object, at: path)
  }

  /// Sets the value for a key path and notifies the observers (KVC guide, `setValue:forKeyPath:`).
  public func set(_ object: Reference, forKeyPath text: String, to value: Value) throws(ModelError) {
    // Most settings need no transaction to be made of them.
    if let commit = model.commit(settingPlainly: text, of: object, to: value) { return notify(commit) }
    try commit(Transaction([.set(object, keyPath: text, value)]))
  }

  /// Commits a transaction and notifies the observers. One that fails changes nothing and notifies none.
  @discardableResult
  public func commit(_ transaction: Transaction) throws(ModelError) -> Commit {
    let commit = try model.commit(transaction)
    notify(commit)
    return commit
  }

  private func notify(_ commit: Commit) {
    guard index.count > 0 else { return }
    // Most commits tell one observer at the most, and need no list of events.
    if let plain = index.plainNotification(of: commit, in: model.state) {
      if case .event(let event) = plain { handlers[event.observer]?(event) }
      return
    }
    var events: [ObserverEvent] = []
    index.notify(CollectionOfOne(commit), of: model.state) { events.append($0) }
    if events.count > 1 { events.sort { $0.observer.rawValue < $1.observer.rawValue } }
    for event in events {
      handlers[event.observer]?(event)
    }
  }

  /// Begins to observe key paths of an object (KVO guide, "Registering as an Observer"). With `initial` the handler is
  /// called once before this returns.
  public func observe(
    _ object: Reference, _ keyPaths: [String], options: ObservingOptions = [.new, .initial], context: String? = nil,
    handler: @escaping Handler
  ) throws(ModelError) -> Token {
    let entity = try state.requireRecord(object).entity
    var observations: [Observation] = []
    for text in keyPaths {
      let path = try model.schema.resolveObservable(text, from: entity)
      observations.append(Observation(object: object, keyPath: path, options: options, context: context))
    }
    let observer = ObserverID(nextObserver)
    nextObserver += 1
    index.add(observations, of: observer, in: state)
    handlers[observer] = handler
    if options.contains(.initial) {
      let changes = observations.map { $0.initialChange(cell: nil, in: state) }
      handler(ObserverEvent(observer: observer, revision: revision, writer: nil, changes: changes, gone: []))
    }
    return Token(observer: observer)
  }

  /// Ends an observation; ending it twice does nothing.
  public func end(_ token: Token) {
    index.remove(token.observer)
    handlers[token.observer] = nil
  }
}

public import KeyValueModel

/// A model with its observers in one process: key-value coding and observing as a library, without server or network.
///
/// Not Sendable: it belongs to its owner, and calls the handlers on the thread that commits, after the commit, in the
/// order of registration. A handler may read and observe; it must not commit.
public final class ObservableModel {
  /// A handle to an observation, which goes on until `end(_:)` is called with the token. Dropping the token does not
  /// end it.
  public struct Token: Hashable, Sendable {
    fileprivate let observer: ObserverID
  }

  /// A function that is called with the effects of one commit on the observer.
  public typealias Handler = (ObserverEvent) -> Void

  /// The complete contents of the model in one value: the runtime checks each access to a variable of an object, and a
  /// setting would need five such accesses.
  private struct Contents {
    var model: Model
    var index = ObserverIndex()
    /// The handlers by observer number.
    var handlers = SparseArray<Handler>()
    var nextObserver: UInt64 = 0

    /// Sets an attribute of an object if the setting needs no further work; `outcome` receives whom to notify. Returns
    /// false, having changed nothing, if the setting needs a transaction.
    mutating func setPlainly(
      _ object: Reference, _ text: String, _ value: Value, _ outcome: inout Outcome
    ) -> Bool {
      guard let commit = model.commit(settingPlainly: text, of: object, to: value) else { return false }
      guard index.count > 0 else { return true }
      // Most commits notify at most one observer, and need no list of events.
      var budget = ObservationBudget()
      switch index.plainNotification(of: commit, in: model.state, &budget) {
      case .nothing?: break
      case .event(let event)?: if let handler = handlers[event.observer.rawValue] { outcome = .event(handler, event) }
      case nil: outcome = .commit(commit)
      }
      return true
    }
  }

  /// The notification that is still due for a completed setting.
  private enum Outcome {
    /// No observer is notified.
    case nothing
    /// This handler is called with this event.
    case event(Handler, ObserverEvent)
    /// The observers of this commit still have to be found.
    case commit(Commit)
  }

  private var contents: Contents

  /// Creates a model without objects.
  public init(schema: Schema) {
    contents = Contents(model: Model(schema: schema))
  }

  /// The current state of the objects.
  public var state: ModelState { contents.model.state }

  /// The last committed transaction.
  public var revision: Revision { contents.model.revision }

  /// The number of observations.
  public var observationCount: Int { contents.index.count }

  /// Returns the value for a key path of an object (KVC guide, `valueForKeyPath:`).
  public func value(of object: Reference, forKeyPath text: String) throws(ModelError) -> Value {
    let path = try contents.model.schema.resolve(text, from: state.requireRecord(object).entity)
    return state.value(of: object, at: path)
  }

  /// Sets the value for a key path and notifies the observers (KVC guide, `setValue:forKeyPath:`).
  public func set(_ object: Reference, forKeyPath text: String, to value: Value) throws(ModelError) {
    // Most settings do not need a transaction.
    var outcome = Outcome.nothing
    if contents.setPlainly(object, text, value, &outcome) {
      switch outcome {
      case .nothing: return
      case .event(let handler, let event): return handler(event)
      case .commit(let commit): return notify(commit)
      }
    }
    try commit(Transaction([.set(object, keyPath: text, value)]))
  }

  /// Commits a transaction and notifies the observers. One that fails changes nothing and notifies none.
  @discardableResult
  public func commit(_ transaction: Transaction) throws(ModelError) -> Commit {
    let commit = try contents.model.commit(transaction)
    notify(commit)
    return commit
  }

  private func notify(_ commit: Commit) {
    guard contents.index.count > 0 else { return }
    var events: [ObserverEvent] = []
    contents.index.notify(CollectionOfOne(commit), of: contents.model.state) { events.append($0) }
    if events.count > 1 { events.sort { $0.observer.rawValue < $1.observer.rawValue } }
    for event in events {
      contents.handlers[event.observer.rawValue]?(event)
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
      let path = try contents.model.schema.resolveObservable(text, from: entity)
      observations.append(Observation(object: object, keyPath: path, options: options, context: context))
    }
    let observer = ObserverID(contents.nextObserver)
    contents.nextObserver += 1
    contents.index.add(observations, of: observer, in: state)
    contents.handlers[observer.rawValue] = handler
    if options.contains(.initial) {
      let changes = observations.map { $0.initialChange(cell: nil, in: state) }
      handler(ObserverEvent(observer: observer, revision: revision, writer: nil, changes: changes, gone: []))
    }
    return Token(observer: observer)
  }

  /// Ends an observation; ending it twice does nothing.
  public func end(_ token: Token) {
    contents.index.remove(token.observer)
    contents.handlers[token.observer.rawValue] = nil
  }
}

/// Values under numbers that are assigned in ascending order and seldom released, in pages of neighbours. A dictionary
/// of pages has a sixty-fourth of the entries of a dictionary of values, and stays in a cache for longer.
///
/// Memory: one page for each 64 consecutive numbers of which at least one has a value.
struct SparseArray<Value> {
  private struct Page {
    private(set) var count = 0
    private var values = ContiguousArray<Value?>(repeating: nil, count: SparseArray.pageSize)

    subscript(index: Int) -> Value? {
      get { values[index] }
      set {
        count += (newValue == nil ? 0 : 1) - (values[index] == nil ? 0 : 1)
        values[index] = newValue
      }
    }
  }

  private static var pageSize: Int { 64 }

  private var pages: [UInt64: Page] = [:]

  /// Creates an array without values.
  init() {}

  /// The number of pages.
  var pageCount: Int { pages.count }

  /// The value of a number; nil if it has none.
  subscript(number: UInt64) -> Value? {
    get {
      let (page, index) = Self.place(of: number)
      return pages[page]?[index]
    }
    set {
      let (page, index) = Self.place(of: number)
      guard newValue != nil || pages[page] != nil else { return }
      pages[page, default: Page()][index] = newValue
      if newValue == nil, pages[page]?.count == 0 { pages[page] = nil }
    }
  }

  private static func place(of number: UInt64) -> (page: UInt64, index: Int) {
    let (page, index) = number.quotientAndRemainder(dividingBy: UInt64(pageSize))
    return (page, Int(index))
  }
}

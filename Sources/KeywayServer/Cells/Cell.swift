import KeyValueModel
import KeyValueObserving

/// A named slot of a stream that shows one object, or one live query, at a time.
struct Cell {
  var binding: CellBinding
  /// What it observes of an object; empty while it shows none.
  var observations: [Observation] = []
  /// The live query that it shows.
  var query: Query?
  /// What it has not received of its object while it was off screen or its stream suspended; nil while it receives
  /// everything.
  var pending: PendingChanges?
  /// The same of its query; nil while it receives everything, and where it shows none.
  var missed: MissedContents?
  /// Whether it has still to receive its whole state: it was bound while it received nothing, or it is not known what
  /// its client has.
  var isOwedInitial = false
  /// The revision at which it went off screen, while it is; nil while it receives everything, and where it never
  /// received anything.
  var pausedAt: Revision?
  /// The segment that it missed something in while it was told what it missed before; nil while it is told nothing.
  var segment: Int?
  /// The object that it lost.
  var lost: LostObject?
  /// The object that it had lost when it was bound to what it shows.
  var former: FormerObject?
  /// The event that it last received of anything but what a commit did; nil where it has received none since it was
  /// bound.
  var refresh: CellRefresh?
  /// The revision at which it last received anything but what a commit did: what it shows, or what it had missed.
  var refreshedAt: Revision = 0
  /// How many events it has received.
  var told = 0
  /// About how many bytes it takes up, but for what it remembers while it receives nothing.
  var weight = 0

  /// The same with what is kept of a former object.
  var wholeWeight: Int { weight + (former?.weight ?? 0) }
  /// What is kept of the objects that it showed when it is bound anew.
  var formerWhenRebound: FormerObject? { FormerObject(of: self) ?? former }

  /// True if it receives something when it comes into view again, or when its stream catches up.
  var hasMissed: Bool {
    isOwedInitial || pending.map { $0.commits > 0 || $0.gone != nil } ?? false || !(missed?.isNothing ?? true)
  }

  /// Whether it receives nothing for now.
  var isPaused: Bool { pending != nil }

  /// The cell as `GET` shows it.
  func described(as name: String) -> JSONObject {
    var body: JSONObject = ["cell": .string(name)]
    binding.describe(in: &body)
    body["pending"] = .integer(Int64((pending?.commits ?? 0) + (missed?.count ?? 0)))
    body["told"] = .integer(Int64(told))
    return body
  }

  // MARK: Off screen, or behind a slow reader

  /// From now on it receives nothing and remembers what it has: that of `delivered`. A paused cell goes on as it is.
  mutating func pause(at delivered: DeliveredState) {
    if pending == nil {
      // One that is owed its state does not go on from what it had.
      let nothing = PendingChanges(since: DeliveredValues())
      pending = isOwedInitial ? nothing : PendingChanges(observations, in: delivered.reader)
    }
    guard let query, missed == nil, !isOwedInitial else { return }
    guard let shown = delivered.result(query) else {
      isOwedInitial = true
      return
    }
    missed = MissedContents(shown: shown, since: delivered.revision)
  }

  /// From now on it receives nothing, and what it has is not known.
  mutating func pauseUnknown() {
    if pending == nil { pending = PendingChanges(since: DeliveredValues()) }
    if query != nil, missed == nil { isOwedInitial = true }
  }

  /// True if its query was changed while it received nothing: its client has rows of another one.
  var hasAnotherQuery: Bool { missed.map { $0.shown.query != query } ?? false }

  /// Forgets what it has received up to a revision: it is owed its state.
  mutating func oweState(at revision: Revision) {
    missed = nil
    isOwedInitial = true
    refresh = nil
    refreshedAt = revision
    pausedAt = revision
  }

  /// It receives everything again, and first, in `update`, what it missed until `present`.
  mutating func resume(
    as name: String, at present: DeliveredState, _ encoder: EventEncoder, _ update: inout CellUpdate
  ) {
    let context = binding.context?.text
    let received = update.count
    if let gone = pending?.gone {
      update.add(ObserverEvent.Gone(cell: name, object: gone, context: context))
      lost = LostObject(
        object: gone, position: .state(at: present.revision), observations: lost?.observations ?? [])
    } else if isOwedInitial {
      update.addInitial(observations, of: name, in: present.reader)
      if let query, let result = present.result(query) {
        update.add(
          QueryNotification(cell: name, context: context, body: .results(result, present.reader, isInitial: true)))
      }
    } else {
      if !update.isTooLong, let pending {
        update.addCoalesced(pending.coalesced(observations, cell: name, in: present.reader))
      }
      if let query, let missed, let result = present.result(query),
        let notification = missed.notification(
          cell: name, context: context, to: result, in: present.reader, at: present.revision, encoder)
      {
        update.add(notification)
      }
    }
    pending = nil
    pausedAt = nil
    missed = nil
    isOwedInitial = false
    // One that missed nothing goes on as if it had never looked away.
    if update.count > received || update.isTooLong { refreshedAt = present.revision }
  }
}

/// An object that a cell showed until it was deleted, or could no longer be read, and that it shows no longer.
struct LostObject {
  let object: Reference
  /// When the cell received `gone`, or was to receive it.
  let position: StreamPosition
  /// What the cell observed of it.
  var observations: [Observation] = []
}

/// An event that told a cell its state, or what it had missed, and not what a commit did.
struct CellRefresh: Hashable {
  /// Those with the same number were one event; later ones have higher numbers.
  let number: Int
  /// Whether no earlier event of the stream can have had the same id: then a client that has the id has the event.
  let isFirstOfID: Bool
}

/// What a cell showed until it lost that by a commit, and was bound anew: a client that resumes from before is told of
/// it. A cell remembers the last such object.
struct FormerObject {
  let lost: LostObject
  /// The revision at which the cell last received anything of it but what a commit did.
  let refreshedAt: Revision
  /// That event; nil where it received none.
  let refresh: CellRefresh?

  /// The object that a cell has lost; nil where that was not by a commit, or the cell was not told.
  init?(of cell: Cell) {
    guard let lost = cell.lost, !lost.observations.isEmpty, lost.position == .commit(lost.position.revision),
      cell.refreshedAt < lost.position.revision,
      cell.binding.isVisible || lost.position.revision <= cell.pausedAt ?? 0
    else { return nil }
    self.lost = lost
    refreshedAt = cell.refreshedAt
    refresh = cell.refresh
  }

  /// The last revision that the cell was told of it.
  var lostAt: Revision { lost.position.revision }

  /// About how many bytes it takes up.
  var weight: Int { lost.observations.count * StreamWeight.formerObservation }
}

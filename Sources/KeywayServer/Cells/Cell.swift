import KeyValueModel
import KeyValueObserving

/// A named slot of a stream that shows one object, or one live query, at a time.
struct Cell {
  var binding: CellBinding
  /// The observations of its object; empty while it shows none.
  var observations: [Observation] = []
  /// The live query that it shows.
  var query: Query?
  /// The changes of its object that it has not received because it was off screen or its stream suspended; nil while it
  /// receives everything.
  var pending: MissedChanges?
  /// The changes of its query that it has not received; nil while it receives everything, and if it shows no query.
  var missed: MissedContents?
  /// True if it has still to receive its whole state: it was bound while it received nothing, or it is not known which
  /// state its client has.
  var isOwedInitial = false
  /// The revision at which it was paused; nil while it receives everything, and if it never received anything.
  var pausedAt: Revision?
  /// The segment in which it remembers what it misses while it is told what it missed before; nil while it is told
  /// nothing.
  var segment: Int?
  /// The object that it lost.
  var lost: LostObject?
  /// The object that it had lost before it was bound to what it shows now.
  var former: FormerObject?
  /// The last event that told it its state, or what it had missed, and not what a commit did; nil if there was none
  /// since it was bound.
  var refresh: CellRefresh?
  /// The revision at which it last received its state, or what it had missed, and not what a commit did.
  var refreshedAt: Revision = 0
  /// The number of events that it has received.
  var told = 0
  /// The approximate size in bytes, without what it remembers while it receives nothing.
  var weight = 0

  /// The size with what is kept of a former object.
  var wholeWeight: Int { weight + (former?.weight ?? 0) }
  /// The former object that is kept when the cell is bound to something else.
  var formerWhenRebound: FormerObject? { FormerObject(of: self) ?? former }

  /// True if it receives something when it comes into view again, or when its stream catches up.
  var hasMissed: Bool {
    isOwedInitial || pending.map { $0.commits > 0 || $0.gone != nil } ?? false || !(missed?.isNothing ?? true)
  }

  /// True if it receives nothing for now.
  var isPaused: Bool { pending != nil }

  /// Returns the cell as `GET` shows it.
  func described(as name: String) -> JSONObject {
    var body: JSONObject = ["cell": .string(name)]
    binding.describe(in: &body)
    body["pending"] = .integer(Int64((pending?.commits ?? 0) + (missed?.count ?? 0)))
    body["told"] = .integer(Int64(told))
    return body
  }

  // MARK: Off screen, or behind a slow reader

  /// Pauses the cell: from now on it receives nothing and remembers the state that it has, that of `delivered`. A
  /// paused cell stays as it is.
  mutating func pause(at delivered: DeliveredState) {
    if pending == nil {
      // A cell that is owed its state does not continue from the state that it had.
      let nothing = MissedChanges(since: DeliveredValues())
      pending = isOwedInitial ? nothing : MissedChanges(observations, in: delivered.reader)
    }
    guard let query, missed == nil, !isOwedInitial else { return }
    guard let shown = delivered.result(query) else {
      isOwedInitial = true
      return
    }
    missed = MissedContents(shown: shown, since: delivered.revision)
  }

  /// Pauses the cell when it is not known which state it has.
  mutating func pauseUnknown() {
    if pending == nil { pending = MissedChanges(since: DeliveredValues()) }
    if query != nil, missed == nil { isOwedInitial = true }
  }

  /// True if its query was changed while it received nothing, so that its client has the rows of another query.
  var hasAnotherQuery: Bool { missed.map { $0.shown.query != query } ?? false }

  /// Forgets what the cell has received up to a revision, so that it is owed its state.
  mutating func oweState(at revision: Revision) {
    missed = nil
    isOwedInitial = true
    refresh = nil
    refreshedAt = revision
    pausedAt = revision
  }

  /// Resumes the cell: it receives everything again, and first, in `update`, what it missed until `present`.
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
    // A cell that missed nothing continues as if it had never been paused.
    if update.count > received || update.isTooLong { refreshedAt = present.revision }
  }
}

/// An object that a cell showed until it was deleted, or could no longer be read.
struct LostObject {
  let object: Reference
  /// The position at which the cell received `gone`, or was to receive it.
  let position: StreamPosition
  /// The observations that the cell had of it.
  var observations: [Observation] = []
}

/// An event that told a cell its state, or what it had missed, and not what a commit did.
struct CellRefresh: Hashable {
  /// The number of the event: cells with the same number were told by one event; later events have higher numbers.
  let number: Int
  /// True if no earlier event of the stream can have had the same id, so that a client that has the id has the event.
  let isFirstOfID: Bool
}

/// An object that a cell lost by a commit before it was bound to something else. A client that resumes from before that
/// is told of it. A cell remembers only the last such object.
struct FormerObject {
  let lost: LostObject
  /// The revision at which the cell last received the state of the object, or what it had missed, and not what a commit
  /// did.
  let refreshedAt: Revision
  /// The event; nil if there was none.
  let refresh: CellRefresh?

  /// Creates the former object of a cell, or returns nil if the cell lost its object otherwise than by a commit, or was
  /// not told.
  init?(of cell: Cell) {
    guard let lost = cell.lost, !lost.observations.isEmpty, lost.position == .commit(lost.position.revision),
      cell.refreshedAt < lost.position.revision,
      cell.binding.isVisible || lost.position.revision <= cell.pausedAt ?? 0
    else { return nil }
    self.lost = lost
    refreshedAt = cell.refreshedAt
    refresh = cell.refresh
  }

  /// The revision of the commit by which the cell lost the object, the last that it was told of it.
  var lostAt: Revision { lost.position.revision }

  /// The approximate size in bytes.
  var weight: Int { lost.observations.count * StreamWeight.formerObservation }
}

import DequeModule
import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store

/// The streams whose connection was cut, by their names: tables without a lock and without a clock.
///
/// These streams observe nothing. A client that has `streams.cutPerAddress` loses its oldest for another; if there are
/// `streams.cut` in all, the client that has most loses its oldest.
struct CutStreams {
  /// A stream as it was when it was cut.
  struct Entry {
    let stream: CellStream
    /// The last revision that the stream was notified of.
    let revision: Revision
    /// True if the client's side had received everything.
    let isDelivered: Bool
    /// The last second at which the stream can be resumed.
    let deadline: UInt64
    /// The number that tells the entry from one of the same stream when it was cut at another time.
    fileprivate(set) var number = 0
  }

  private var entries: [StreamID: Entry] = [:]
  /// The names in the order of cutting, with the numbers that the entries had.
  private var order: Deque<(name: StreamID, number: Int)> = []
  private var counts: [ClientAddress: Int] = [:]
  private var lastNumber = 0

  /// The number of entries.
  var count: Int { entries.count }

  /// Returns a stream that was cut, or nil if there is none of the name or its deadline has passed.
  func entry(_ name: StreamID, at now: UInt64) -> Entry? {
    entries[name].flatMap { $0.deadline < now ? nil : $0 }
  }

  /// Adds a stream, and removes others if there are too many.
  mutating func insert(_ entry: Entry, _ limits: StreamLimits) {
    let client = entry.stream.client
    while counts[client] ?? 0 >= limits.cutPerAddress, removeOldest(of: client) {}
    while entries.count >= limits.cut, let most = counts.max(by: { $0.value < $1.value }), removeOldest(of: most.key) {}
    var entry = entry
    lastNumber += 1
    entry.number = lastNumber
    entries[entry.stream.name] = entry
    counts[client, default: 0] += 1
    order.append((entry.stream.name, entry.number))
  }

  /// Removes a stream. Returns false if there was none.
  mutating func remove(_ name: StreamID, at now: UInt64) -> Bool {
    let exists = entry(name, at: now) != nil
    forget(name)
    return exists
  }

  /// Takes out a stream that is resumed. Returns nil if it is not there with this number.
  mutating func take(_ name: StreamID, _ number: Int, at now: UInt64) -> Entry? {
    guard let entry = entry(name, at: now), entry.number == number else { return nil }
    entries[name] = nil
    discount(entry.stream.client)
    return entry
  }

  /// Puts back a stream that was not resumed after all.
  mutating func putBack(_ entry: Entry) {
    entries[entry.stream.name] = entry
    counts[entry.stream.client, default: 0] += 1
  }

  /// Removes the streams whose deadline has passed.
  mutating func removeExpired(at now: UInt64) {
    while let oldest = order.first {
      if let entry = entries[oldest.name], entry.number == oldest.number {
        guard entry.deadline < now else { return }
        forget(oldest.name)
      }
      order.removeFirst()
    }
  }

  private mutating func removeOldest(of client: ClientAddress) -> Bool {
    guard
      let index = order.firstIndex(where: { place in
        entries[place.name].map { $0.number == place.number && $0.stream.client == client } ?? false
      })
    else { return false }
    forget(order.remove(at: index).name)
    return true
  }

  private mutating func forget(_ name: StreamID) {
    guard let entry = entries.removeValue(forKey: name) else { return }
    entry.stream.release()
    discount(entry.stream.client)
  }

  private mutating func discount(_ client: ClientAddress) {
    let count = counts[client] ?? 0
    counts[client] = count > 1 ? count - 1 : nil
  }
}

/// The cells of a stream that was cut, as they were then, for a client that resumes it.
struct CutCells {
  let name: StreamID
  /// The client that pays for the stream.
  let client: ClientAddress
  /// The number of their entry in `CutStreams`.
  let number: Int
  /// The revision at which the stream was opened.
  let openedAt: Revision
  private let cutAt: Revision
  private let lastTold: Revision
  private let isDelivered: Bool
  /// The cells, none of them suspended by a slow reader.
  private(set) var cells: CellSet

  /// Takes the cells of a stream for a client who may read what `viewer` may. The registry's lock is held.
  init(_ entry: CutStreams.Entry, for viewer: Viewer?, in state: ModelState, _ services: StreamServices)
    throws(Problem)
  {
    name = entry.stream.name
    client = entry.stream.client
    number = entry.number
    openedAt = entry.stream.openedAt
    cutAt = entry.revision
    lastTold = entry.stream.lastTold
    isDelivered = entry.isDelivered
    cells = entry.stream.cells
    // The query whose rows the client has is not followed any more.
    for (name, cell) in cells.byName where cell.hasAnotherQuery && cell.binding.isVisible {
      cells[name]?.oweState(at: cutAt)
    }
    cells.endSuspension()
    guard viewer != entry.stream.viewer else { return }
    for (name, cell) in cells.sorted {
      var cell = cell
      cell.former = nil
      cell.binding.viewer = viewer
      cell.observations = try services.observations(of: cell.binding, state, mayBeGone: true)
      if let lost = cell.lost {
        var binding = cell.binding
        binding.object = lost.object
        cell.lost?.observations = try services.observations(of: binding, state, mayBeGone: true)
      }
      cell.query = try services.query(of: cell.binding, state.schema)
      // An identity must not receive the data of another.
      if cell.isPaused, cell.pending?.gone == nil {
        cell.pending = MissedChanges(since: DeliveredValues())
        cell.missed = nil
        cell.isOwedInitial = !cell.observations.isEmpty || cell.query != nil
      }
      cells[name] = cell
    }
  }

  /// The bindings of the cells, by their names.
  var bindings: [(name: String, binding: CellBinding)] { cells.sorted.map { ($0.key, $0.value.binding) } }

  /// Returns what the cells missed that the client does not have, given that it has the state of a revision.
  func missed(after revision: Revision, _ snapshot: Snapshot, _ services: StreamServices) -> MissedByCells {
    let after = min(revision, cutAt)
    let isSure = isDelivered && revision >= lastTold
    var sources: [MissedByCells.Source] = []
    var gates: [String: CellGate] = [:]
    var formers: [CellReplay.Former] = []
    var refreshes = Refreshes()
    var cells = cells
    for (name, var cell) in cells.sorted {
      if cell.hasAnotherQuery,
        cell.pausedAt ?? cutAt > revision || cell.mayLackRefresh(after: revision, isSure: isSure)
      {
        cell.oweState(at: cutAt)
        cells[name] = cell
      }
      // A cell on screen continues from the state that its client has, or is told its state.
      if cell.binding.isVisible { cells[name]?.isOwedInitial = false }
      let former = cell.former.flatMap { $0.lostAt > revision ? $0 : nil }
      gates[name] = CellGate(
        toldUpTo: max(revision, cell.refreshedAt), beginsAt: cell.refreshedAt,
        former: former.map { max(revision, $0.refreshedAt) + 1...$0.lostAt },
        hiddenAfter: cell.binding.isVisible ? nil : cell.pausedAt ?? 0, rememberedUpTo: cutAt)
      sources.append((name, cell.binding, cell.replayed(after: after), cell.query))
      if let former {
        formers.append((name, former.lost.observations, max(after, former.refreshedAt)))
        if former.refresh?.isMissing(at: former.refreshedAt, after: revision, isSure: isSure) ?? false {
          refreshes.add((name, former.lost.observations, nil, nil, true), former.refresh, former.refreshedAt)
        }
      }
      guard cell.mayLackRefresh(after: revision, isSure: isSure) else { continue }
      let isGone = cell.lost?.position == .state(at: cell.refreshedAt)
      refreshes.add(
        (name, isGone ? [] : cell.replayed(after: after), cell.query, isGone ? cell.lost?.object : nil, false),
        cell.refresh, cell.refreshedAt)
    }
    return MissedByCells(
      sources, cells, after: after, snapshot, services, through: gates, formers: formers,
      refreshes: Array(refreshes.byNumber.values))
  }

  /// The events that told cells their state and are to be told again.
  private struct Refreshes {
    var byNumber: [Int: CellReplay.Refresh] = [:]

    /// Adds the part of an event that told a cell its state at a revision.
    mutating func add(_ part: CellReplay.Refresh.Part, _ event: CellRefresh?, _ revision: Revision) {
      let number = event?.number ?? -Int(revision)
      byNumber[
        number,
        default: CellReplay.Refresh(
          revision: revision, number: number, isFirstOfID: event?.isFirstOfID ?? false, parts: [])
      ].parts.append(part)
    }
  }
}

extension Cell {
  /// Returns the observations of the cell, or those that it had until it lost its object after a revision.
  fileprivate func replayed(after revision: Revision) -> [Observation] {
    guard let lost, observations.isEmpty else { return observations }
    return lost.position == .commit(lost.position.revision) && lost.position.revision > revision
      ? lost.observations : []
  }

  /// Returns true if the client, which has the state of a revision, may not have received the last event that told the
  /// cell its state, or what it had missed, and not what a commit did.
  fileprivate func mayLackRefresh(after revision: Revision, isSure: Bool) -> Bool {
    if isOwedInitial, binding.isVisible { return refreshedAt >= revision }
    return refresh?.isMissing(at: refreshedAt, after: revision, isSure: isSure) ?? false
  }
}

extension CellRefresh {
  /// Returns true if a client that has the state of a revision may not have received this event, which told the state
  /// of `position`. An event of that revision itself comes after what its commit did: the client has it only if it is
  /// sure to have received everything, or if no other event had the id.
  fileprivate func isMissing(at position: Revision, after revision: Revision, isSure: Bool) -> Bool {
    position > revision || (position == revision && !(isSure || isFirstOfID))
  }
}

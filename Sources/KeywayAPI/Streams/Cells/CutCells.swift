import HTTPServer
import KeyValueModel
import KeyValueObserving
import ModelStore

/// The cells of a stream that was cut, as they were then, for a client that comes back to them.
struct CutCells {
  let name: StreamID
  /// What `CutStreams` knows them by.
  let number: Int
  /// The revision that the stream was opened at.
  let openedAt: Revision
  private let cutAt: Revision
  private let lastTold: Revision
  private let isDelivered: Bool
  /// The cells, none of them held up by a slow reader.
  private(set) var cells: CellSet

  /// The cells of a stream for a client who may read what `viewer` may. The registry's lock is held.
  init(_ entry: CutStreams.Entry, for viewer: Viewer?, in state: ModelState, _ services: StreamServices)
    throws(Problem)
  {
    name = entry.stream.name
    number = entry.number
    openedAt = entry.stream.openedAt
    cutAt = entry.revision
    lastTold = entry.stream.lastTold
    isDelivered = entry.isDelivered
    cells = entry.stream.cells
    cells.endSuspension()
    guard viewer != entry.stream.viewer else { return }
    for (name, cell) in cells.sorted {
      var cell = cell
      cell.binding.viewer = viewer
      cell.observations = try services.observations(of: cell.binding, state, mayBeGone: true)
      if let lost = cell.lost {
        var binding = cell.binding
        binding.object = lost.object
        cell.lost?.observations = try services.observations(of: binding, state, mayBeGone: true)
      }
      cell.query = try services.query(of: cell.binding, state.schema)
      // What one identity had is not what another may hear of.
      if cell.isPaused, cell.pending?.gone == nil {
        cell.pending = PendingChanges(since: DeliveredValues())
        cell.missed = nil
        cell.isOwedInitial = !cell.observations.isEmpty || cell.query != nil
      }
      cells[name] = cell
    }
  }

  /// What the cells are bound to, by their names.
  var bindings: [(name: String, binding: CellBinding)] { cells.sorted.map { ($0.key, $0.value.binding) } }

  /// What the cells missed that the client has not, who has the state of a revision.
  func missed(after revision: Revision, _ snapshot: Snapshot, _ services: StreamServices) -> MissedByCells {
    let after = min(revision, cutAt)
    let isSure = isDelivered && revision >= lastTold
    var sources: [MissedByCells.Source] = []
    var gates: [String: CellGate] = [:]
    var refreshes: [Int: CellReplay.Refresh] = [:]
    for (name, cell) in cells.sorted {
      gates[name] = CellGate(
        toldUpTo: max(revision, cell.refreshedAt),
        hiddenAfter: cell.binding.isVisible ? nil : cell.pausedAt ?? 0, rememberedUpTo: cutAt)
      sources.append((name, cell.binding, cell.replayed(after: after), cell.query))
      guard cell.mayLackRefresh(after: revision, isSure: isSure) else { continue }
      let number = cell.refresh?.number ?? -Int(cell.refreshedAt)
      let isGone = cell.lost?.position == .state(at: cell.refreshedAt)
      refreshes[
        number,
        default: CellReplay.Refresh(
          revision: cell.refreshedAt, number: number, isFirstOfID: cell.refresh?.isFirstOfID ?? false, parts: [])
      ].parts.append(
        (
          name, isGone ? [] : cell.replayed(after: after), cell.query, isGone ? cell.lost?.object : nil
        ))
    }
    return MissedByCells(
      sources, cells, after: after, snapshot, services, through: gates, refreshes: Array(refreshes.values))
  }
}

extension Cell {
  /// What it observes, or observed until it lost its object after a revision.
  fileprivate func replayed(after revision: Revision) -> [Observation] {
    guard let lost, observations.isEmpty else { return observations }
    return lost.position == .commit(lost.position.revision) && lost.position.revision > revision
      ? lost.observations : []
  }

  /// Whether its client, who has the state of a revision, may not have received the last event that told the cell
  /// anything but what a commit did. An event of that revision itself comes after what its commit did: only where the
  /// client is sure to have received everything, or no other event had the id, it has that.
  fileprivate func mayLackRefresh(after revision: Revision, isSure: Bool) -> Bool {
    let isOwed = isOwedInitial && binding.isVisible
    guard refresh != nil || isOwed, refreshedAt >= revision else { return false }
    return refreshedAt > revision || isOwed || !(isSure || refresh?.isFirstOfID ?? false)
  }
}

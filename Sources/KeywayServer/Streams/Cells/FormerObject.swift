import KeyValueModel
import KeyValueObserving

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

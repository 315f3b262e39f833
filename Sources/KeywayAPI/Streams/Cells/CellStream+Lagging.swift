import HTTPServer
import KeyValueModel
import KeyValueObserving
import ModelStore

/// A reader that is too slow for what its stream receives: its cells are remembered as cells off screen are, and
/// receive in one update what they missed.
extension CellStream {
  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {
    guard !cells.isSuspended else { return }
    defer { reservePending() }
    let shown = cells.byName.filter { !$0.value.isPaused }
    suspend(shown, after: firstMissed.lastNotified, publication)
    for (name, cell) in cells.byName {
      // What a cell received when it was bound or came into view, or what it missed before it went off screen, may be
      // among what was missed: it receives everything anew.
      let isRefreshed = StreamPosition.state(at: cell.refreshedAt) >= firstMissed && shown[name] != nil
      let isHidden = cell.pausedAt.map { StreamPosition.commit($0) >= firstMissed } ?? false
      if isRefreshed || isHidden { cells[name]?.isOwedInitial = true }
      guard let lost = cell.lost, lost.position >= firstMissed, shown[name] != nil || isHidden else { continue }
      cells.absorb([], gone: lost.object, by: name)
    }
  }

  /// Has the cells on screen remember what they have received up to a revision, and what they missed since.
  private func suspend(_ shown: [String: Cell], after revision: Revision, _ publication: borrowing Publication) {
    for name in shown.keys { cells[name]?.pausedAt = revision }
    guard let delivered = DeliveredState(after: revision, publication) else {
      return suspendOwingState(shown, publication)
    }
    cells.suspend(at: delivered)
    let observed = shown.filter { !$0.value.observations.isEmpty }
      .map { (name: Optional($0.key), observations: $0.value.observations) }
    var events: [ObserverEvent] = []
    let absent = publication.replay(observed, after: revision) { events.append($0) }
    guard let absent, !events.contains(where: \.hasOverflowed) else { return suspendOwingState(shown, publication) }
    for event in events {
      for (name, changes) in Dictionary(grouping: event.changes, by: { $0.cell ?? "" }) {
        cells.absorb(changes, gone: nil, by: name)
      }
    }
    for (name, cell) in shown {
      if let query = cell.query {
        cells[name]?.missed?.count = publication.queries.contentCount(of: query, since: revision + 1)
      }
      if absent.contains(name) { cells[name]?.isOwedInitial = true }
    }
  }

  /// The same where it is no longer known what the cells had received: they receive everything anew.
  private func suspendOwingState(_ shown: [String: Cell], _ publication: borrowing Publication) {
    cells.suspend(at: DeliveredState(present: publication))
    for name in shown.keys { cells[name]?.isOwedInitial = true }
  }

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> (@Sendable () -> Void)? {
    let present = DeliveredState(present: publication)
    let before = cells
    var text = caughtUp(to: present)
    if text.isTooLong {
      // The present state has no old values, and of a live query no deletions.
      cells = before
      cells.forgetMissedOnScreen()
      text = caughtUp(to: present)
    }
    reservePending()
    services.postCatchUp(text, to: id, at: present.revision)
    return nil
  }

  private func caughtUp(to present: DeliveredState) -> EventText {
    let update = cells.catchUp(to: present, services.encoder)
    defer { noteTold(present.revision) }
    return cells.encode(
      update, at: present.revision, services.encoder, isFirstOfID: isUntold(present.revision))
  }
}

import HTTPServer
import KeyValueModel
import KeyValueObserving
import Store
import Support

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

  /// Has the cells on screen remember what they have received up to a revision, and what they missed since. Where that
  /// is not known any more, or would hold up the writer, they receive everything anew.
  private func suspend(_ shown: [String: Cell], after revision: Revision, _ publication: borrowing Publication) {
    for name in shown.keys { cells[name]?.pausedAt = revision }
    let observations = shown.values.flatMap(\.observations)
    guard let delivered = DeliveredState(after: revision, observedBy: observations, publication) else {
      return cells.suspendOwingState()
    }
    let observed = shown.filter { !$0.value.observations.isEmpty }
      .map { (name: Optional($0.key), observations: $0.value.observations) }
    var events: [ObserverEvent] = []
    let absent = publication.replay(observed, after: revision) { events.append($0) }
    guard let absent, !events.contains(where: \.hasOverflowed) else { return cells.suspendOwingState() }
    cells.suspend(at: delivered)
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

  // MARK: Catching up

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork? {
    let snapshot = publication.snapshot
    var values = ObservedValues(steps: ObservedValues.stepsUnderLock)
    do throws(ModelError) {
      try values.evaluate(cells.observationsToCatchUp, in: snapshot.state, at: snapshot.revision)
    } catch {
      return catchUpWork(id, publication)
    }
    guard values.textBytes <= Self.textBytesUnderLock else { return catchUpWork(id, publication) }
    let present = DeliveredState(present: publication, values)
    let text = cells.caughtUp(to: present, services.encoder, isFirstOfID: isUntold(present.revision))
    noteTold(present.revision)
    reservePending()
    services.postCatchUp(text, to: id, at: present.revision)
    return nil
  }

  /// So many bytes of text may be encoded while writers wait.
  private static let textBytesUnderLock = 65_536

  /// The catching up of a stream of which too much has to be worked out while writers wait: its cells are told what
  /// they missed up to now, and go on missing what comes meanwhile.
  private func catchUpWork(_ id: StreamID, _ publication: borrowing Publication) -> CatchUpWork {
    let snapshot = publication.snapshot
    let told = cells
    var results: [Query: QueryResult] = [:]
    for query in queries { results[query] = publication.queries.result(of: query) }
    let segment = cells.beginSegment(at: snapshot.revision) { results[$0] }
    let isFirstOfID = isUntold(snapshot.revision)
    return { [services, results] store, registry in
      var told = told
      var values = ObservedValues(steps: store.limits.queryOpeningCost)
      let visible = told.byName.values.filter { $0.binding.isVisible && $0.isPaused }.flatMap(\.observations)
      do throws(ModelError) {
        try values.evaluate(visible, in: snapshot.state, at: snapshot.revision)
      } catch {
        return services.hub.post([.endStream(id, services.encoder.closingEvent(.overflow))], position: nil)
      }
      let reader = values.reader(of: snapshot.state)
      let present = DeliveredState(reader: reader, revision: snapshot.revision) { results[$0] }
      let text = told.caughtUp(to: present, services.encoder, isFirstOfID: isFirstOfID)
      store.withPublication { publication in
        registry.contents.withLock { contents in
          guard let stream = contents.subscriptions[id] as? CellStream else { return }
          let isLast = stream.cells.endSegment(segment, told, delivered: present)
          stream.noteTold(snapshot.revision)
          stream.reservePending()
          services.hub.post([services.catchUp(text, of: id, isLast: isLast)], position: nil)
        }
      }
    }
  }
}

extension CellSet {
  /// Has the cells catch up and gives what those on screen receive of it: what they missed or, where that is too long,
  /// their state, which has no old values, and of a live query no deletions.
  fileprivate mutating func caughtUp(
    to present: DeliveredState, _ encoder: EventEncoder, isFirstOfID: Bool
  ) -> EventText {
    let before = self
    var update = catchUp(to: present, encoder)
    let text = encode(update, at: present.revision, encoder, isFirstOfID: isFirstOfID)
    guard text.isTooLong else { return text }
    self = before
    forgetMissedOnScreen()
    update = catchUp(to: present, encoder)
    return encode(update, at: present.revision, encoder, isFirstOfID: isFirstOfID)
  }
}

package import HTTPServer
internal import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Streams whose readers are too slow. The hub stops queueing for them and says so; from then on they are remembered as
/// cells off screen are, and when a client reads again it is told in one what it missed. The events in between cost
/// nobody anything but a count.
extension StreamRegistry {
  /// Differences of more rows than this are encoded while others write.
  private static let rowsUnderLock = 1000

  /// A stream misses events, the first of them that of `position`. Any thread, without a lock.
  package func reportLag(_ id: StreamID, firstMissed position: UInt64) {
    lagReports.withLock { $0[id] = StreamPosition(rawValue: position) }
  }

  /// Remembers what a stream has that lags by now.
  package func beginLag(_ id: StreamID, _ publication: inout Publication) {
    contents.withLock { contents in
      // What is forgotten of the past from now on, nobody needs any more.
      guard let firstMissed = lagReports.withLock({ $0.removeValue(forKey: id) }) else { return }
      switch contents.streams[id] {
      case .topic(let topic, _):
        topic.lagging.add(id, missed: missed(topic, after: firstMissed.lastTold, publication))
      case .query(let topic, _):
        let query = topic.key.query
        let lastTold = firstMissed.lastTold
        let shown = publication.queries.result(of: query, before: lastTold + 1)
        let missed = MissedContents(
          shown: shown ?? QueryResult(nothingOf: query), since: lastTold,
          count: publication.queries.contentCount(of: query, since: lastTold + 1), isUnknown: shown == nil)
        topic.beginLag(id, missed: missed)
      case .cells(let stream):
        suspend(stream, firstMissed, publication)
      case .over, .journal, nil: return
      }
    }
  }

  /// What an observer of a topic was told after a revision; nil where that is no longer known.
  private func missed(_ topic: Topic, after lastTold: Revision, _ publication: borrowing Publication)
    -> PendingChanges?
  {
    guard let past = publication.past(after: lastTold) else { return nil }
    var missed = PendingChanges(topic.observations, in: past)
    var isComplete = true
    let absent = publication.replay([(nil, topic.observations)], after: lastTold) { event in
      isComplete = isComplete && !event.hasOverflowed
      missed.absorb(event.changes, gone: nil)
    }
    return absent?.isEmpty == true && isComplete ? missed : nil
  }

  private func suspend(_ stream: CellStream, _ firstMissed: StreamPosition, _ publication: borrowing Publication) {
    guard !stream.isSuspended else { return }
    let shown = stream.cells.filter { $0.value.pending == nil }
    remember(stream, firstMissed, publication)
    for (name, cell) in stream.cells {
      // What a cell was told when it was bound or came into view, or what it missed before it went off screen, may be
      // among what was missed: it is told everything anew.
      let isRefreshed = StreamPosition.news(at: cell.refreshedAt) >= firstMissed && shown[name] != nil
      let isHidden = cell.pausedAt.map { StreamPosition.commit($0) >= firstMissed } ?? false
      if isRefreshed || isHidden { stream.cells[name]?.isOwedInitial = true }
      guard let lost = cell.lost, lost.position >= firstMissed,
        shown[name] != nil || isHidden
      else { continue }
      stream.cells[name]?.pending?.absorb([], gone: lost.object)
    }
  }

  private func remember(_ stream: CellStream, _ firstMissed: StreamPosition, _ publication: borrowing Publication) {
    let lastTold = firstMissed.lastTold
    guard let moment = Moment(after: lastTold, publication) else { return suspendUnknown(stream, publication) }
    let shown = stream.cells.filter { $0.value.pending == nil }
    stream.suspend(at: moment)
    let cells = shown.filter { !$0.value.observations.isEmpty }
      .map { (name: Optional($0.key), observations: $0.value.observations) }
    var events: [ObserverEvent] = []
    let absent = publication.replay(cells, after: lastTold) { events.append($0) }
    guard let absent, !events.contains(where: \.hasOverflowed) else { return suspendUnknown(stream, publication) }
    for event in events {
      for (name, changes) in Dictionary(grouping: event.changes, by: { $0.cell ?? "" }) {
        stream.cells[name]?.pending?.absorb(changes, gone: nil)
      }
    }
    for (name, cell) in shown {
      if let query = cell.query {
        stream.cells[name]?.missed?.count = publication.queries.contentCount(of: query, since: lastTold + 1)
      }
      if absent.contains(name) { stream.cells[name]?.isOwedInitial = true }
    }
  }

  /// Nobody knows any more what the cells were told: they are told everything anew.
  private func suspendUnknown(_ stream: CellStream, _ publication: borrowing Publication) {
    let shown = stream.cells.filter { $0.value.pending == nil }.keys
    stream.suspend(at: Moment(present: publication))
    for name in shown { stream.cells[name]?.isOwedInitial = true }
  }

  // MARK: Catching up

  /// Tells a lagging stream, which has read everything else, what it missed. Gives what is to be encoded and posted
  /// while others write, where that is much; then the stream goes on lagging behind the present.
  package func catchUp(_ id: StreamID, _ publication: inout Publication) -> (@Sendable () -> Void)? {
    // The report may have been overtaken by this.
    beginLag(id, &publication)
    return contents.withLock { contents in
      switch contents.streams[id] {
      case .topic(let topic, _): catchUp(id, topic, publication)
      case .query(let topic, _): return catchUp(id, topic, publication)
      case .cells(let stream):
        let revision = publication.snapshot.revision
        post(
          encoded(stream.resume(at: Moment(present: publication), encoder), of: stream, revision), to: id, at: revision)
      case .over, .journal, nil: break
      }
      return nil
    }
  }

  private func catchUp(_ id: StreamID, _ topic: Topic, _ publication: borrowing Publication) {
    guard topic.lagging.contains(id) else { return }
    let snapshot = publication.snapshot
    var event = StreamEvent(revision: snapshot.revision)
    var bytes: [UInt8] = []
    if let missed = topic.lagging.missed(by: id) {
      event.changes = missed.coalesced(topic.observations, cell: nil, in: snapshot.state)
      encoder.append(event, to: &bytes)
    } else {
      let changes = topic.observations.map { $0.initialChange(cell: nil, in: snapshot.state) }
      encoder.appendChange(changes, revision: snapshot.revision, isInitial: true, to: &bytes)
    }
    topic.lagging.remove(id)
    post(bytes, to: id, at: snapshot.revision)
  }

  private func catchUp(
    _ id: StreamID, _ topic: QueryTopic, _ publication: borrowing Publication
  ) -> (@Sendable () -> Void)? {
    guard let missed = topic.missed(by: id), let result = publication.queries.result(of: topic.key.query) else {
      return nil
    }
    let snapshot = publication.snapshot
    let context = topic.key.context?.text
    let size = missed.isUnknown ? result.count : QueryContent.size(from: missed.shown, to: result)
    guard size > Self.rowsUnderLock else {
      topic.endLag(id)
      post(encoded(missed, context, to: result, snapshot), to: id, at: snapshot.revision)
      return nil
    }
    topic.beginLag(id, missed: MissedContents(shown: result, since: snapshot.revision))
    return { [self] in
      let bytes = encoded(missed, context, to: result, snapshot)
      hub.post([.catchUp(id, EventBytes(bytes), isLast: false)], position: nil)
    }
  }

  private func encoded(
    _ missed: MissedContents, _ context: String?, to result: QueryResult, _ snapshot: Snapshot
  ) -> [UInt8] {
    var event = StreamEvent(revision: snapshot.revision)
    let news = missed.news(
      cell: nil, context: context, to: result, in: snapshot.state, at: snapshot.revision, encoder)
    event.queries = news.map { [$0] } ?? []
    var bytes: [UInt8] = []
    encoder.append(event, to: &bytes)
    return bytes
  }

  private func post(_ bytes: [UInt8], to id: StreamID, at revision: Revision) {
    // Nobody misses it: it is queued however long it is.
    hub.post([.catchUp(id, EventBytes(bytes), isLast: true)], position: StreamPosition.commit(revision).rawValue)
  }
}

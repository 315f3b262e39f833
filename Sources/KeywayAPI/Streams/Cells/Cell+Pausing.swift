internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// Telling a cell nothing for a while, be it off screen or its stream's reader slow.
extension Cell {
  /// From now on it is told nothing and remembers what it has: that of the moment. One that does so already goes on.
  mutating func pause(at moment: Moment) {
    if pending == nil { pending = PendingChanges(observations, in: moment.reader) }
    guard let query, missed == nil, !isOwedInitial else { return }
    guard let shown = moment.result(query) else {
      isOwedInitial = true
      return
    }
    missed = MissedContents(shown: shown, since: moment.revision)
  }

  /// It is told again, first what it missed until the moment, which is the present.
  mutating func resume(as name: String, at moment: Moment, _ encoder: EventEncoder, _ news: inout CellNews) {
    let state = moment.reader
    if let gone = pending?.gone {
      news.gone.append(.init(cell: name, object: gone))
      lost = (gone, .news(at: moment.revision))
    } else if isOwedInitial {
      news.initial += observations.map { $0.initialChange(cell: name, in: state) }
      if let query, let result = moment.result(query) {
        news.queries.append(
          QueryNews(
            cell: name, context: binding.context?.text, sort: .results(result, state, isInitial: true)))
      }
    } else {
      news.coalesced += pending?.coalesced(observations, cell: name, in: state) ?? []
      if let query, let missed, let result = moment.result(query) {
        news.queries += [
          missed.news(
            cell: name, context: binding.context?.text, to: result, in: state, at: moment.revision, encoder)
        ].compactMap { $0 }
      }
    }
    pending = nil
    pausedAt = nil
    missed = nil
    isOwedInitial = false
    refreshedAt = moment.revision
  }
}

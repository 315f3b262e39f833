internal import KeyValueModel
internal import KeyValueObserving

/// Telling a cell nothing for a while, be it off screen or its stream's reader slow.
extension Cell {
  /// From now on it is told nothing and remembers what it has: what `reader` has. One that does so already goes on.
  mutating func pause(in reader: some ObjectReader) {
    if pending == nil { pending = PendingChanges(observations, in: reader) }
  }

  /// It is told again, first what it missed, up to what `reader` has.
  mutating func resume(as name: String, in reader: some ObjectReader, _ news: inout CellNews) {
    if let gone = pending?.gone {
      news.gone.append(.init(cell: name, object: gone))
    } else if isOwedInitial {
      news.initial += observations.map { $0.initialChange(cell: name, in: reader) }
    } else {
      news.coalesced += pending?.coalesced(observations, cell: name, in: reader) ?? []
    }
    pending = nil
    isOwedInitial = false
  }
}

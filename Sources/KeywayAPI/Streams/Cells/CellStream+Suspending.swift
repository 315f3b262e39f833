internal import KeyValueModel
internal import KeyValueObserving
internal import ModelStore

/// A reader that is too slow for what its stream is told: nothing is queued for it, and it is told in the end what it
/// missed.
extension CellStream {
  /// From now on no cell is told anything, those on screen neither: they have been told what there was at the moment.
  /// Cells that are bound meanwhile are told nothing as well.
  func suspend(at moment: Moment) {
    isSuspended = true
    for name in cells.keys { cells[name]?.pause(at: moment) }
  }

  /// What the cells on screen missed until the moment, which is the present, in the order of their names; those off screen go on remembering. Nothing is counted
  /// as told yet: see `count`.
  func resume(at moment: Moment, _ encoder: EventEncoder) -> CellNews {
    isSuspended = false
    var news = CellNews()
    for (name, cell) in cells.sorted(by: { $0.key < $1.key }) where cell.binding.isVisible && cell.pending != nil {
      cells[name]?.resume(as: name, at: moment, encoder, &news)
    }
    return news
  }
}

internal import KeyValueModel
internal import KeyValueObserving

/// A reader that is too slow for what its stream is told: nothing is queued for it, and it is told in the end what it
/// missed.
extension CellStream {
  /// From now on no cell is told anything, those on screen neither; what `reader` has is what they have been told. Cells
  /// that are bound meanwhile are told nothing as well.
  func suspend(in reader: some ObjectReader) {
    isSuspended = true
    for name in cells.keys { cells[name]?.pause(in: reader) }
  }

  /// What the cells on screen missed, in the order of their names, up to what `reader` has; those off screen go on
  /// remembering. Nothing is counted as told yet: see `count`.
  func resume(in reader: some ObjectReader) -> CellNews {
    isSuspended = false
    var news = CellNews()
    for (name, cell) in cells.sorted(by: { $0.key < $1.key }) where cell.binding.isVisible && cell.pending != nil {
      cells[name]?.resume(as: name, in: reader, &news)
    }
    return news
  }
}

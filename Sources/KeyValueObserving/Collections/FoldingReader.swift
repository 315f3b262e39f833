import KeyValueModel

/// A state together with what its watched collections fold into, so that reading a sum does not read the members.
struct FoldingReader<Base: ObjectReader>: ObjectReader {
  let base: Base
  let folds: KeptFolds

  init(base: Base, watches: borrowing CollectionWatches) {
    self.base = base
    folds = watches.folds
  }

  func record(_ reference: Reference) -> ObjectRecord? { base.record(reference) }

  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { folds.folded(fold, of: owner) }

  var work: ReadingWork? { base.work }
}

/// What the watched collections fold into: no more of the watches than reading takes, since it is copied for that.
struct KeptFolds {
  let watches: [ObservedKey: CollectionWatch]
  /// The watches of a collection.
  let watchesByList: [ObservedKey: [ObservedKey]]

  /// What a collection folds into, where that is kept.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? {
    for watch in watchesByList[ObservedKey(object: owner, key: fold.key)] ?? [] {
      if let found = watches[watch], found.branch.fold == fold, found.isComplete { return found.running?.value }
    }
    return nil
  }
}

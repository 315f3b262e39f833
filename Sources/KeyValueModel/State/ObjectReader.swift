/// Something that can be asked for objects: a state, or a past one seen through the changes since.
public protocol ObjectReader {
  /// The object of this name, nil where there is none.
  func record(_ reference: Reference) -> ObjectRecord?

  /// What a collection of an object folds into, where the reader keeps that up to date; nil where it has to be worked
  /// out from the members, as most readers' has.
  func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue?

  /// The work that reading is part of, where it is counted and its results are remembered; nil where it is not.
  var work: ReadingWork? { get }

  /// What computed keys are worked out from, where the reader leaves out objects that someone may not read; nil where
  /// it has everything.
  var unguarded: (any ObjectReader)? { get }

  /// Whether the reader leaves out a key of an entity's objects.
  func hides(_ key: Int, of entity: Entity) -> Bool
}

extension ObjectReader {
  /// Nothing is kept.
  public func folded(_ fold: CollectionFold, of owner: Reference) -> FoldedValue? { nil }

  /// Nothing is counted.
  public var work: ReadingWork? { nil }

  /// Nothing is left out.
  public var unguarded: (any ObjectReader)? { nil }

  /// No key is left out.
  public func hides(_ key: Int, of entity: Entity) -> Bool { false }
}

/// The collection operators of key paths (KVC guide, "Using Collection Operators").
public enum CollectionOperator: String, Hashable, Sendable, CaseIterable {
  /// How many members there are.
  case count = "@count"
  /// The sum of the members' values, in decimal; nulls count as 0.
  case sum = "@sum"
  /// Their sum divided by the number of members; null where there are none.
  case average = "@avg"
  /// The least of the members' values, nulls left out; null where there are none.
  case minimum = "@min"
  /// The greatest.
  case maximum = "@max"
  /// The members' values in order, nulls left out.
  case unionOfObjects = "@unionOfObjects"
  /// The same, each value once.
  case distinctUnionOfObjects = "@distinctUnionOfObjects"
  /// The elements of the members' lists in order, nulls left out.
  case unionOfArrays = "@unionOfArrays"
  /// The same, each value once.
  case distinctUnionOfArrays = "@distinctUnionOfArrays"
}

/// An operator of a key path, with what stands behind it.
public struct CollectionOperation: Hashable, Sendable {
  /// The operator.
  public let function: CollectionOperator
  /// The key path of each member whose value is meant, as indexes; empty for the member itself, and for `@count`.
  public let memberKeys: [Int]
  /// Whether the members' values are dates, which compare by instant.
  let isOverDates: Bool
  /// Whether the members' values are numbers that need not be whole: then no result is an integer.
  let isOverNumbers: Bool
}

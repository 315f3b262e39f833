/// The problems that requests of a sort have in common.
extension Set<ProblemCode> {
  /// These and others.
  func and(_ others: Set<ProblemCode>) -> Set<ProblemCode> { union(others) }

  /// What any request may meet: how it is written, and whether the server can take it.
  static let common: Set<ProblemCode> = [
    .malformedRequest, .malformedQuery, .misdirectedRequest, .uriTooLong, .headersTooLarge, .contentTooLarge,
    .unsupportedMediaType, .notImplemented, .unsupportedVersion, .overloaded, .draining, .internalError,
  ]
  /// What is behind its store, or has none yet.
  static let state: Set<ProblemCode> = [.behind, .draining, .storeUnavailable, .leaderUnreachable]
  /// What those meet of whom it is not known who they are, or that may not.
  static let access: Set<ProblemCode> = [.unauthenticated, .forbidden]

  /// What is too much to read.
  static let reading: Set<ProblemCode> = [.overloaded, .tooManySteps, .tooManyBytes, .tooManyObjects]
  /// An object that is not there.
  static let object: Set<ProblemCode> = [.unknownEntity, .unknownObject]
  /// A key path that is none.
  static let keyPath: Set<ProblemCode> = [.malformedKeyPath, .undefinedKey, .invalidValue]
  /// A filter, sort, section, keys or aggregate that is none.
  static let query: Set<ProblemCode> = [
    .malformedFilter, .malformedKeyPath, .malformedQuery, .undefinedKey, .invalidValue, .unobservableKeyPath,
    .notACollection,
  ]
  /// What a body that is read may be.
  static let body: Set<ProblemCode> = [.malformedJSON, .invalidValue]
  /// What a write may meet.
  static let writing: Set<ProblemCode> = [
    .staleRevision, .contentTooLarge, .tooManySteps, .tooManyOperations, .storeUnavailable, .overloaded,
    .invalidValue, .tooManyLeases, .tooManyLeasesOfClient,
  ]
  /// What the values of a write may be.
  static let values: Set<ProblemCode> = [
    .unknownEntity, .unknownObject, .undefinedKey, .nullNotAllowed, .readOnlyKey, .wrongEntity, .alreadyExists,
    .notACollection, .indexOutOfRange, .malformedKeyPath, .nullInKeyPath,
  ]
  /// What an `Idempotency-Key` may meet.
  static let idempotency: Set<ProblemCode> = [.idempotencyKeyInUse, .idempotencyKeyReused]

  /// What opening a stream may meet.
  static let opening: Set<ProblemCode> = [
    .tooManyStreams, .tooManyKeyPaths, .tooManyBytes, .tooManySteps, .overloaded, .unobservableKeyPath,
  ]
  /// What opening a live query may meet.
  static let liveQuery: Set<ProblemCode> = [.tooManyQueries]
  /// What binding cells may meet.
  static let cells: Set<ProblemCode> = opening.and(.query).and(.object).and([
    .tooManyCells, .tooManyQueries, .unknownCell, .notACollection,
  ])
}

import HTTPTypes

extension ProblemCode {
  /// The statuses that answers with it have: of a limit that one client has met, also 429.
  var statuses: [HTTPResponse.Status] {
    switch self {
    case .tooManyStreams, .tooManyQueries: [.tooManyRequests, status]
    default: [status]
    }
  }

  /// The headers that help.
  var headers: [ParameterDescription] {
    switch self {
    case .unauthenticated: [.challenge]
    case .notAcceptable: [.accept]
    case .unsupportedMediaType: [.accept, .acceptPatch, .acceptEncoding]
    case .staleRevision: [.tag]
    case .rangeNotSatisfiable: [.contentRange]
    case .tooManyCells, .tooManyKeyPaths, .tooManyOperations, .tooManyObjects, .tooManyBytes, .tooManySteps,
      .tooManyRequests, .tooManyStreams, .tooManyQueries, .tooManyLeases, .tooManyLeasesOfClient, .overloaded, .behind,
      .leaderUnreachable, .draining, .storeUnavailable,
      .idempotencyKeyInUse:
      [.retryAfter]
    default: []
    }
  }
}

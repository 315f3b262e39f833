package import HTTPTypes

/// What a method of a resource takes and gives: from it the API is described, and the query parameters are checked.
package struct OperationDescription: Sendable {
  /// Its name in clients that are made from the description (`operationId`).
  let name: String
  /// What it does, in a few words.
  let summary: String
  /// The query parameters.
  let parameters: [ParameterDescription]
  /// The query parameters of the stream that it gives to clients that accept one.
  let streamParameters: [ParameterDescription]
  /// The headers that it looks at, beside those that every request may have.
  let headers: [ParameterDescription]
  /// The body.
  let body: BodyDescription?
  /// The answers that are not problems.
  let answers: [AnswerDescription]
  /// The problems, beside those that every request may meet.
  let problems: Set<ProblemCode>
  /// The events of its stream; none where it gives no stream.
  let events: [EventDescription]

  /// A method that takes and gives this.
  package init(
    name: String, summary: String, parameters: [ParameterDescription] = [],
    streamParameters: [ParameterDescription] = [], headers: [ParameterDescription] = [], body: BodyDescription? = nil,
    answers: [AnswerDescription], problems: Set<ProblemCode> = [], events: [EventDescription] = []
  ) {
    (self.name, self.summary) = (name, summary)
    (self.parameters, self.streamParameters, self.headers) = (parameters, streamParameters, headers)
    (self.body, self.answers, self.problems, self.events) = (body, answers, problems, events)
  }

  /// The names of the query parameters that its answer, or its stream, takes.
  func parameterNames(ofStream isStream: Bool) -> [String] {
    (isStream ? streamParameters : parameters).map(\.name)
  }
}

/// The body of a request.
package struct BodyDescription: Sendable {
  /// Its media types, each with what is in it.
  let types: [(name: String, schema: SchemaForm)]
  /// Whether it must be there.
  let isRequired: Bool

  /// A body of one of these media types.
  package init(types: [(name: String, schema: SchemaForm)], isRequired: Bool = true) {
    (self.types, self.isRequired) = (types, isRequired)
  }

  /// A body of JSON.
  package static func json(_ schema: SchemaForm, isRequired: Bool = true) -> BodyDescription {
    BodyDescription(types: [(Body.json, schema)], isRequired: isRequired)
  }

  /// A merge patch of something: a JSON object of what changes.
  static func mergePatch(_ schema: SchemaForm) -> BodyDescription {
    BodyDescription(types: [(Body.json, schema), (Body.mergePatch, schema)])
  }
}

/// An answer that is no problem.
package struct AnswerDescription: Sendable {
  /// Its status.
  let status: HTTPResponse.Status
  /// What it says, as a sentence.
  let meaning: String
  /// The media types, each with what is in it; none where there is no content.
  var types: [(name: String, schema: SchemaForm)] = []
  /// The headers that it may have beside those of every answer.
  var headers: [ParameterDescription] = []

  /// An answer of JSON.
  package static func json(
    _ schema: SchemaForm, _ meaning: String, status: HTTPResponse.Status = .ok, headers: [ParameterDescription] = []
  ) -> AnswerDescription {
    AnswerDescription(status: status, meaning: meaning, types: [(Body.json, schema)], headers: headers)
  }

  /// An answer of text of some type.
  package static func text(_ type: String, _ meaning: String, headers: [ParameterDescription] = []) -> AnswerDescription
  {
    AnswerDescription(status: .ok, meaning: meaning, types: [(type, .text)], headers: headers)
  }

  /// 204.
  package static func nothing(_ meaning: String, headers: [ParameterDescription] = []) -> AnswerDescription {
    AnswerDescription(status: .noContent, meaning: meaning, headers: headers)
  }

  /// 304.
  static let unchanged = AnswerDescription(
    status: .notModified, meaning: "It is the version that If-None-Match names.", headers: [.tag])

  /// A stream alone.
  static let stream = AnswerDescription(status: .ok, meaning: "A stream of Server-Sent Events.")
}

/// The problems that requests of a sort have in common.
extension Set<ProblemCode> {
  /// These and others.
  package func and(_ others: Set<ProblemCode>) -> Set<ProblemCode> { union(others) }

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
  package static let reading: Set<ProblemCode> = [.overloaded, .tooManySteps, .tooManyBytes, .tooManyObjects]
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

/// What a method of a resource takes and gives: from it the API is described, and the query parameters are checked.
struct OperationDescription: Sendable {
  /// Its name in clients that are made from the description (`operationId`).
  let name: String
  /// What it does, in a few words.
  let summary: String
  /// The query parameters.
  var parameters: [ParameterDescription] = []
  /// The query parameters of the stream that it gives to clients that accept one.
  var streamParameters: [ParameterDescription] = []
  /// The headers that it looks at, beside those that every request may have.
  var headers: [ParameterDescription] = []
  /// The body.
  var body: BodyDescription?
  /// The answers that are no problems.
  var answers: [AnswerDescription]
  /// The problems, beside those that every request may meet.
  var problems: Set<ProblemCode> = []
  /// The events of its stream; none where it gives no stream.
  var events: [EventDescription] = []

  /// The names of the query parameters that its answer, or its stream, takes.
  func parameterNames(ofStream isStream: Bool) -> [String] {
    (isStream ? streamParameters : parameters).map(\.name)
  }
}

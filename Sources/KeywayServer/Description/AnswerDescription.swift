import HTTPTypes

/// An answer that is no problem.
struct AnswerDescription: Sendable {
  /// Its status.
  let status: HTTPResponse.Status
  /// What it says, as a sentence.
  let meaning: String
  /// The media types, each with what is in it; none where there is no content.
  var types: [(name: String, schema: SchemaForm)] = []
  /// The headers that it may have beside those of every answer.
  var headers: [ParameterDescription] = []

  /// An answer of JSON.
  static func json(
    _ schema: SchemaForm, _ meaning: String, status: HTTPResponse.Status = .ok, headers: [ParameterDescription] = []
  ) -> AnswerDescription {
    AnswerDescription(status: status, meaning: meaning, types: [(Body.json, schema)], headers: headers)
  }

  /// An answer of text of some type.
  static func text(_ type: String, _ meaning: String, headers: [ParameterDescription] = []) -> AnswerDescription {
    AnswerDescription(status: .ok, meaning: meaning, types: [(type, .text)], headers: headers)
  }

  /// 204.
  static func nothing(_ meaning: String, headers: [ParameterDescription] = []) -> AnswerDescription {
    AnswerDescription(status: .noContent, meaning: meaning, headers: headers)
  }

  /// 304.
  static let unchanged = AnswerDescription(
    status: .notModified, meaning: "It is the version that If-None-Match names.", headers: [.tag])

  /// A stream alone.
  static let stream = AnswerDescription(status: .ok, meaning: "A stream of Server-Sent Events.")
}

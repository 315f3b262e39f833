import HTTPTypes

/// What a resource is for, and what its methods take and give.
struct RouteDescription: Sendable {
  /// The chapter of the description that it stands in.
  enum Chapter: String, CaseIterable, Sendable {
    case objects, streams, schema, access, operations, nodes, files
  }

  /// Where it stands.
  let chapter: Chapter
  /// Its methods, but for `HEAD`, which is as `GET`, and `OPTIONS`, which is the same everywhere.
  let operations: [HTTPRequest.Method: OperationDescription]

  init(_ chapter: Chapter, _ operations: [HTTPRequest.Method: OperationDescription]) {
    self.chapter = chapter
    self.operations = operations
  }
}

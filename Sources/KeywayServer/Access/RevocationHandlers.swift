import HTTPServer
import HTTPTypes
import KeyValueModel
import Store
import Support

/// `/v1/access/revocations`: whose tokens are refused.
struct RevocationHandlers: Sendable {
  let revocations: Revocations
  let readings: Readings

  /// `GET` of all: `{"revocations":[{"sub":…,"before":…}]}`, by the bytes of `sub`.
  func list(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try context.checkParameters()
    return try readings.response(to: request, isLong: revocations.count > 1_000) {
      [revocations] budget throws(Problem) in
      try Response.json(["revocations": .array(revocations.all().map(Self.json))], within: budget)
    }
  }

  /// `GET` of one.
  func get(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let subject = try subject(context)
    guard let revocation = revocations.revocation(of: subject) else { throw Self.unknown(subject) }
    return .response(Self.response(revocation))
  }

  /// `PUT`: makes one, or gives the one that is there another time. Answers with it, 201 where it is new.
  func put(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let revocation = Revocation(subject: try subject(context), milliseconds: try Self.time(of: request))
    return deferred(for: request.client) { [revocations] () throws(Problem) in
      let isNew = try revocations.add(revocation)
      return Self.response(revocation, status: isNew ? .created : .ok)
    }
  }

  /// `DELETE`: lifts one.
  func delete(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let subject = try subject(context)
    return deferred(for: request.client) { [revocations] () throws(Problem) in
      guard try revocations.remove(subject) else { throw Self.unknown(subject) }
      return Response(status: .noContent)
    }
  }

  /// The answer of work that waits for the disk, which no thread of connections does.
  private func deferred(
    for client: ClientAddress, _ work: @escaping @Sendable () throws(Problem) -> Response
  ) -> HandlerResponse {
    .deferred { [readings] completion in
      readings.perform(for: client, completion) {
        do throws(Problem) {
          completion.respond(try work())
        } catch {
          completion.respond(error.response)
        }
      }
    }
  }

  private func subject(_ context: RequestContext) throws(Problem) -> String {
    try context.checkParameters()
    let subject = context[.sub]
    guard subject.utf8.count <= TokenVerifier.maximumSubjectBytes else {
      throw Problem(.invalidValue, "the sub in the path has at most \(TokenVerifier.maximumSubjectBytes) bytes")
    }
    return subject
  }

  /// `before` of a body in milliseconds since 1970; now, where there is no body or it does not say.
  private static func time(of request: borrowing Request) throws(Problem) -> Int64 {
    var body = JSONObject()
    if !request.body().isEmpty { body = try Body.object(of: request) }
    for (name, _) in body.members where name != "before" {
      throw Problem(.invalidValue, "'\(name)' is no member of a revocation; it has before")
    }
    guard let before = body["before"] else { return Identifiers.epochMilliseconds }
    guard case .string(let text) = before, text.utf8.count > 10, let instant = RFC3339Instant(text) else {
      throw Problem(.invalidValue, "before wants a date and time of RFC 3339 such as 2026-03-01T09:30:00Z")
    }
    // Rounded up, so that no token is let in that should be refused.
    return instant.seconds * 1_000 + Int64((instant.nanoseconds + 999_999) / 1_000_000)
  }

  private static func response(_ revocation: Revocation, status: HTTPResponse.Status = .ok) -> Response {
    var response = Response.json(members(of: revocation))
    response.status = status
    return response
  }

  private static func json(_ revocation: Revocation) -> Value { .object(members(of: revocation)) }

  private static func members(of revocation: Revocation) -> JSONObject {
    [
      "sub": .string(revocation.subject), "before": .string(RFC3339.dateTime(milliseconds: revocation.milliseconds)),
    ]
  }

  private static func unknown(_ subject: String) -> Problem {
    Problem(.notFound, "there is no revocation of '\(subject)'")
  }
}

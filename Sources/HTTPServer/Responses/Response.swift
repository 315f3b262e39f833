package import HTTPTypes

/// A whole response.
package struct Response: Sendable {
  /// The status; its code alone is sent, with libmicrohttpd's own phrase for it.
  package var status: HTTPResponse.Status
  /// The fields to send. `Date` and `Content-Length` are the server's: such fields are not sent from here.
  package var fields: HTTPFields
  /// The content. The answer to HEAD names its length without it; one with status 204 has neither.
  package var body: [UInt8]
  /// The length of the content that the response stands for: named, and not sent. `body` is empty then.
  package private(set) var withheldCount: Int?
  /// Whether it is what a stream begins with: no length is named, since a stream has none, and the connection ends
  /// behind the fields.
  package private(set) var isStreamHead = false
  /// The content where it is part of a file; `body` is empty then.
  package var file: FileContent?
  /// What the client was granted for the body while it was made, which goes over to the server that sends it; without
  /// one the server reserves it then.
  package var memory: MemoryReservation?
  /// Why it is what it is, for logs and counts: the code of a problem. Not sent.
  package var reason: String?
  /// The word to the handler when it has the request once more; nil for a response that is simply sent. A request that
  /// has kept its body (`Request.keepBody`) is handled again in place of being answered with this response.
  package var retry: Retry?

  /// That a request is to be handled once more.
  package final class Retry: Sendable {
    let outcome: (any Sendable)?

    /// `outcome` is `Request.outcome` when the handler has the request again.
    package init(with outcome: (any Sendable)?) { self.outcome = outcome }
  }

  /// Puts a response together.
  package init(status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// `304 Not Modified` in the place of this response: with its fields, but for the type of its content, and with the
  /// length of its content (RFC 9110 §8.6, §15.4.5).
  package consuming func notModified() -> Response {
    fields[.contentType] = nil
    return Response(status: .notModified, fields: fields, withholding: contentCount)
  }

  /// A response that names the length of the content that it stands for, and does not have it: `304 Not Modified`, or
  /// the answer to a HEAD request.
  package init(status: HTTPResponse.Status, fields: HTTPFields, withholding contentCount: Int) {
    self.init(status: status, fields: fields)
    withheldCount = contentCount
  }

  /// The answer to a HEAD request for a stream: status 200, and the fields that the stream has.
  package init(streamHead fields: HTTPFields) {
    self.init(status: .ok, fields: fields)
    isStreamHead = true
  }

  /// How many bytes the content has.
  var contentCount: Int { file?.count ?? body.count }
}

extension Response {
  /// Takes the memory of the body from a client's, where it is counted.
  mutating func hold(of client: ClientAddress, in ledger: MemoryLedger) throws(MemoryRefusal) {
    guard body.count > MemoryLedger.uncountedBytes else { return }
    if let memory {
      try memory.resize(to: body.capacity)
    } else {
      memory = try ledger.reserve(body.capacity, for: client, .responses)
    }
  }

  /// Makes it the response of the same success that has no content.
  package mutating func dropBody() {
    body = []
    memory = nil
    fields[.contentType] = nil
    if status == .ok { status = .noContent }
  }
}

package import HTTPTypes

/// A whole response.
package struct Response: Sendable {
  /// The status; only its code is sent, with libmicrohttpd's own phrase for it.
  package var status: HTTPResponse.Status
  /// The fields to send. `Date` and `Content-Length` are set by the server and not taken from here.
  package var fields: FieldSection
  /// The content. The response to HEAD states its length without it; one with status 204 has neither.
  package var body: [UInt8]
  /// The length of the content that the response represents, which is stated but not sent; `body` is then empty.
  package private(set) var withheldCount: Int?
  /// True if the response is the beginning of a stream: no length is stated, since a stream has none, and the
  /// connection ends after the fields.
  package private(set) var isStreamHead = false
  /// The content if it is part of a file; `body` is then empty.
  package var file: FileContent?
  /// The memory that the client was granted for the body while it was made, which passes to the server that sends it;
  /// without it the server reserves the memory then.
  package var memory: MemoryReservation?
  /// The reason for the response, for logs and counts: the code of a problem. Not sent.
  package var reason: String?
  /// The instruction to handle the request again; nil for a response that is simply sent. A request that has kept its
  /// body (`Request.keepBody`) is handled again instead of being answered with this response.
  package var retry: Retry?

  /// An instruction to handle a request again.
  package final class Retry: Sendable {
    let outcome: (any Sendable)?

    /// Creates the instruction. `outcome` becomes `Request.outcome` when the handler has the request again.
    package init(with outcome: (any Sendable)?) { self.outcome = outcome }
  }

  /// Creates a response.
  package init(status: HTTPResponse.Status, fields: FieldSection = [:], body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// The response to a client that has closed its connection, which only the log and the counts see. Its status is the
  /// one that nginx logs in this case; it is not a failure of the server.
  package static let clientClosedRequest = Response(
    status: HTTPResponse.Status(code: 499, reasonPhrase: "Client Closed Request"))

  /// Returns `304 Not Modified` in place of this response: with its fields, except the type of its content, and with
  /// the length of its content (RFC 9110 §8.6, §15.4.5).
  package consuming func notModified() -> Response {
    fields[.contentType] = nil
    return Response(status: .notModified, fields: fields, withholding: contentCount)
  }

  /// Creates a response that states the length of the content that it represents, without the content: `304 Not
  /// Modified`, or the response to a HEAD request.
  package init(status: HTTPResponse.Status, fields: FieldSection, withholding contentCount: Int) {
    self.init(status: status, fields: fields)
    withheldCount = contentCount
  }

  /// Creates the response to a HEAD request for a stream: status 200, and the fields of the stream.
  package init(streamHead fields: FieldSection) {
    self.init(status: .ok, fields: fields)
    isStreamHead = true
  }

  /// The size of the content in bytes.
  var contentCount: Int { file?.count ?? body.count }
}

extension Response {
  /// Reserves the memory of the body for a client, unless the body is too small to be counted.
  mutating func hold(of client: ClientAddress, in ledger: MemoryLedger) throws(MemoryRefusal) {
    guard body.count > MemoryLedger.uncountedBytes else { return }
    if let memory {
      try memory.resize(to: body.capacity)
    } else {
      memory = try ledger.reserve(body.capacity, for: client, .responses)
    }
  }

  /// Turns the response into one of the same success without content.
  package mutating func dropBody() {
    body = []
    memory = nil
    fields[.contentType] = nil
    if status == .ok { status = .noContent }
  }
}

/// The fields that every response has, including streams.
enum CommonFields {
  /// The names and values: browsers must not guess the type of the content, and pages of other origins may not embed it
  /// (Fetch standard, `X-Content-Type-Options` and `Cross-Origin-Resource-Policy`).
  static let all: [(name: String, value: String)] = [
    ("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// The maximum number of bytes that these fields and the request's ID add to the head of a response.
  static let byteCount =
    all.reduce(0) { $0 + lineByteCount($1.name, valueByteCount: $1.value.utf8.count) }
    + lineByteCount(RequestID.fieldName, valueByteCount: 128)

  private static func lineByteCount(_ name: String, valueByteCount: Int) -> Int { name.utf8.count + valueByteCount + 4 }
}

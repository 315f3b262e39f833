package import HTTPTypes

/// A whole response.
package struct Response: Sendable {
  /// The status; its code alone is sent, with libmicrohttpd's own phrase for it.
  package var status: HTTPResponse.Status
  /// The fields to send. `Date` and `Content-Length` are the server's: such fields are not sent from here.
  package var fields: HTTPFields
  /// The content. The answer to HEAD names its length without it; one with status 204 has neither.
  package var body: [UInt8]
  /// The length of the content that a `304` stands for: named, and not sent. `body` is empty then.
  package private(set) var withheldCount: Int?
  /// The content where it is part of a file; `body` is empty then.
  package var file: FileContent?
  /// What the client was granted for the body while it was made, which goes over to the server that sends it; without
  /// one the server reserves it then.
  package var memory: MemoryReservation?
  /// Why it is what it is, for logs and counts: the code of a problem. Not sent.
  package var reason: String?

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
    return Response(notModified: fields, contentCount: contentCount)
  }

  /// `304 Not Modified` with these fields, of a resource whose content has so many bytes.
  package init(notModified fields: HTTPFields, contentCount: Int) {
    self.init(status: .notModified, fields: fields)
    withheldCount = contentCount
  }

  /// How many bytes the content has.
  var contentCount: Int { file?.count ?? body.count }
}

package import HTTPTypes

/// A whole response.
package struct Response: Sendable {
  /// The status; its code alone is sent, with libmicrohttpd's own phrase for it.
  package var status: HTTPResponse.Status
  /// The fields to send. `Date` and `Content-Length` are the server's: such fields are not sent from here.
  package var fields: HTTPFields
  /// The content. It is counted but not sent for HEAD, and neither with status 204 or 304.
  package var body: [UInt8]
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

  /// How many bytes the content has.
  var contentCount: Int { file?.count ?? body.count }
}

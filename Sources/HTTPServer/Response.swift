package import HTTPTypes

/// A whole response.
package struct Response: Sendable {
  /// The status; its code alone is sent, with libmicrohttpd's own phrase for it.
  package var status: HTTPResponse.Status
  /// The fields to send. `Date` and `Content-Length` are the server's: such fields are not sent from here.
  package var fields: HTTPFields
  /// The content. It is counted but not sent for HEAD, and neither with status 204 or 304.
  package var body: [UInt8]
  /// What the memory of the body is reserved with; nil where it is not. It goes with the response.
  package var reservation: MemoryReservation?

  /// Puts a response together.
  package init(status: HTTPResponse.Status, fields: HTTPFields = [:], body: [UInt8] = []) {
    self.status = status
    self.fields = fields
    self.body = body
  }
}

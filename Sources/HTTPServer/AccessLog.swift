import HTTPTypes
import Support

/// Receives a record of every request and stream that has ended. Called on the server's own threads: it must not wait.
package protocol AccessLog: AnyObject, Sendable {
  /// True if records are currently wanted; otherwise none is begun.
  var isWanted: Bool { get }

  /// Called once for each request that was begun, when its response is sent or its client gone; for a request that was
  /// answered with a stream, when the stream has ended.
  func ended(_ record: AccessRecord)
}

/// The fields that an access log may report of one request. The only parts written by the client are the method, which
/// is a token, the ID, and the name in its verified credential.
package struct AccessRecord: Sendable {
  /// The request's ID; nil if its header never arrived.
  package var id: RequestID?
  /// The method; nil if it is not a token, or never arrived.
  package var method: String?
  /// The resource as its pattern, never as the path that was sent; nil if none was found.
  package var route: String?
  /// The status of the response; nil if the client left, or was disconnected, before it.
  package var status: Int?
  /// The reason for the response, as the code of a problem.
  package var reason: String?
  /// The size of the response's body in bytes; for a stream, everything that the kernel accepted, including the head.
  package var byteCount = 0
  /// The time from the request line to the last byte of the response, or to the end of the stream.
  package var nanoseconds: Int64 = 0
  /// The address of the client.
  package var client: ClientAddress
  /// The `sub` of the identity that made the request, or nil for an anonymous request.
  package var subject: String?
  /// The way in which the stream that was the response ended; nil if the response was not a stream.
  package var streamEnd: StreamEnd?
}

/// A record for the access log while its request, or the stream that became its answer, lasts.
///
/// `@unchecked Sendable`: it is touched by one thread at a time, first by the libmicrohttpd thread of the connection,
/// which gives it up with the socket, and then by the hub thread that the socket is handed to.
final class AccessEntry: @unchecked Sendable {
  var record: AccessRecord
  private let log: any AccessLog
  private let began = SystemClock.nanoseconds

  init(_ log: any AccessLog, client: ClientAddress) {
    self.log = log
    record = AccessRecord(client: client)
  }

  /// Records the response that is about to be sent.
  func answered(_ response: borrowing Response) {
    record.status = response.status.code
    record.reason = response.reason
    let isBodySent = record.method != "HEAD" && response.status.code != 204 && response.status.code != 304
    record.byteCount = isBodySent ? response.contentCount : 0
  }

  /// Passes the record to the log. Call once.
  func end(_ streamEnd: StreamEnd? = nil) {
    record.streamEnd = streamEnd
    record.nanoseconds = SystemClock.nanoseconds - began
    log.ended(record)
  }
}

import HTTPTypes

/// A record for the access log while its request, or the stream that became its answer, lasts.
///
/// `@unchecked Sendable`: it is touched by one thread at a time, first by the libmicrohttpd thread of the connection,
/// which gives it up with the socket, and then by the hub thread that the socket is handed to.
final class AccessEntry: @unchecked Sendable {
  var record: AccessRecord
  private let log: any AccessLog
  private let began = MonotonicClock.nanoseconds

  init(_ log: any AccessLog, client: ClientAddress) {
    self.log = log
    record = AccessRecord(client: client)
  }

  /// A response is about to be sent.
  func answered(_ response: borrowing Response) {
    record.status = response.status.code
    record.reason = response.reason
    let isBodySent = record.method != "HEAD" && response.status.code != 204 && response.status.code != 304
    record.byteCount = isBodySent ? response.contentCount : 0
  }

  /// Hands the record over. Call once.
  func end(_ streamEnd: StreamEnd? = nil) {
    record.streamEnd = streamEnd
    record.nanoseconds = MonotonicClock.nanoseconds - began
    log.ended(record)
  }
}

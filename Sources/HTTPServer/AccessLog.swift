import HTTPTypes
import Support

/// Hears of every request and stream that has ended. On the server's own threads: it must not wait.
package protocol AccessLog: AnyObject, Sendable {
  /// Whether records are wanted at present: where not, none is begun.
  var isWanted: Bool { get }

  /// Told once for each request that was begun, when its answer is sent or its client gone, and for one that was
  /// answered with a stream, when that has ended.
  func ended(_ record: AccessRecord)
}

/// Everything that an access log may say of one request: nothing that a client wrote but the method, which is a token,
/// the id, and the name in its verified credential.
package struct AccessRecord: Sendable {
  /// The request's id; nil where its header never arrived.
  package var id: RequestID?
  /// The method; nil where it is no token, or never arrived.
  package var method: String?
  /// The resource by its pattern, never by the path that was sent; nil where none was found.
  package var route: String?
  /// The status that was answered; nil where the client left, or was cut, before.
  package var status: Int?
  /// Why it was answered so, by the code of a problem.
  package var reason: String?
  /// The bytes of the answer's body; of a stream, everything that the kernel took, the head included.
  package var byteCount = 0
  /// From the request line to the last byte of the answer, or to the end of the stream.
  package var nanoseconds: Int64 = 0
  /// Who asked.
  package var client: ClientAddress
  /// The `sub` of the identity that asked, or nil if nobody was known.
  package var subject: String?
  /// How the stream ended that was the answer; nil where it was none.
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
    record.nanoseconds = SystemClock.nanoseconds - began
    log.ended(record)
  }
}

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

  /// A record of a request of which nothing else is known yet.
  package init(client: ClientAddress) {
    self.client = client
  }
}

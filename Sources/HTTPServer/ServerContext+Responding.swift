import CMicrohttpd
import Glibc
import HTTPTypes
import Logging
import Synchronization

extension ServerContext {
  /// Queues a response on a connection, on its own thread inside the access handler. `false` if libmicrohttpd does not
  /// take it.
  func send(_ response: Response, on connection: OpaquePointer) -> Bool {
    // libmicrohttpd copies the bytes: they outlive this call, and a copy of some hundred bytes costs less than a
    // callback.
    let queueable = response.body.withUnsafeBytes { bytes in
      MHD_create_response_from_buffer(
        bytes.count, UnsafeMutableRawPointer(mutating: bytes.baseAddress), .RESPMEM_MUST_COPY)
    }
    guard let queueable else { return false }
    defer { MHD_destroy_response(queueable) }
    for field in response.fields where !Self.isOurs(field.name) {
      MHD_add_response_header(queueable, field.name.rawName, field.value)
    }
    if isDraining.load(ordering: .relaxed) {
      MHD_add_response_header(queueable, "Connection", "close")
    }
    return MHD_queue_response(connection, UInt32(response.status.code), queueable) == .YES
  }

  /// Answers a request that libmicrohttpd never hears of, and ends the connection behind it. Every earlier request on
  /// it has been answered.
  func refuse(_ connection: Connection, _ fault: RequestFault, hasBody: Bool) {
    let bytes = ClosingAnswer.bytes(handler.response(to: fault), hasBody: hasBody)
    let sent = bytes.withUnsafeBytes {
      Glibc.send(connection.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
    }
    // A client that has left no room for some hundred bytes does not read answers.
    guard sent == bytes.count else { return }
    shutdown(connection.descriptor, Int32(SHUT_WR))
    lingering.add(duplicateOf: connection.descriptor, isAnswered: true, now: MonotonicClock.milliseconds)
  }

  /// Makes a stream of a connection: the hub gets a duplicate of the descriptor, and libmicrohttpd forgets its own as
  /// soon as `false` is returned, without shutting the socket down (that is what MHD_USE_TURBO changes).
  ///
  /// Better than a suspended connection, which keeps its whole memory, and which libmicrohttpd visits whenever any
  /// other connection of its thread is resumed.
  func handOff(
    _ connection: Connection, _ mhdConnection: OpaquePointer, to stream: EventStream, _ fields: HTTPFields,
    method: HTTPRequest.Method, version: HTTPVersion
  ) -> Bool {
    guard method != .head else {
      hub.abandon(stream)
      connection.exchange.responded()
      return send(Response(status: .ok, fields: fields), on: mhdConnection)
    }
    let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
    guard descriptor >= 0 else {
      logger.warning("no descriptor left for an event stream")
      hub.abandon(stream)
      connection.exchange.responded()
      return send(handler.response(to: .overloaded), on: mhdConnection)
    }
    connection.exchange.handedOff()
    stream.worker.attach(
      stream.id,
      SocketHandoff(
        descriptor: descriptor, isChunked: version == .http11, head: StreamHead.bytes(fields, version: version),
        slot: connection.slot))
    return false
  }

  /// Fields that the server alone decides on.
  private static func isOurs(_ name: HTTPField.Name) -> Bool {
    name == .contentLength || name == .transferEncoding || name == .date
  }
}

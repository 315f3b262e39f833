import CMicrohttpd
import Glibc
import HTTPTypes
import Logging
import Synchronization

extension ServerContext {
  /// Sends the handler's response, for whose body its client holds memory until libmicrohttpd has sent it. Without
  /// memory for it a reader gets the fault instead, and the sender of a request that was carried out the same response
  /// without its content: it must not hear that nothing happened.
  func respond(
    _ response: consuming Response, to connection: Connection, _ mhdConnection: OpaquePointer, _ line: RequestLine
  ) -> Bool {
    connection.exchange.responded()
    connection.body = RequestBody()
    if response.isStreamHead {
      finish(&response, connection, mhdConnection)
      return sendHead(ofStream: response.fields, on: connection, HTTPVersion(line.version))
    }
    // Of a small one no memory is counted, and nothing is copied.
    guard response.body.count > MemoryLedger.uncountedBytes else { return send(response, connection, mhdConnection) }
    response = held(response, of: connection.client, at: connection.address) {
      HTTPRequest.Method(requestLine: line.method)
    }
    return send(response, connection, mhdConnection)
  }

  /// A response with the memory for its body, or what is sent where there is none.
  func held(
    _ response: Response, of client: ClientAddress, at address: ClientAddress, method: () -> HTTPRequest.Method?
  ) -> Response {
    var response = response
    do {
      try response.hold(of: client, in: ledger)
    } catch {
      conditions.note(.overload, client: address)
      let method = method()
      if method == .get || method == .head || response.status.kind != .successful {
        response = handler.response(to: .memoryRefused(error))
      } else {
        response.dropBody()
      }
    }
    return response
  }

  /// Queues a response on a connection, on its own thread inside the access handler. `false` if libmicrohttpd does not
  /// take it.
  func send(_ response: consuming Response, _ connection: Connection, _ mhdConnection: OpaquePointer) -> Bool {
    finish(&response, connection, mhdConnection)
    connection.access?.answered(response)
    connection.count(response.contentCount)
    connection.fileLease = response.file?.lease
    let made = response.file.map { $0.makeResponse() } ?? SentBody.makeResponse(of: response)
    guard let queueable = made else { return false }
    defer { MHD_destroy_response(queueable) }
    FieldLines(response.fields, id: connection.requestID).add(to: queueable)
    if isDraining.load(ordering: .relaxed) { MHD_add_response_header(queueable, "Connection", "close") }
    return MHD_queue_response(mhdConnection, UInt32(response.status.code), queueable) == .YES
  }

  /// Has the handler put into a response what only the request of a connection can say.
  private func finish(_ response: inout Response, _ connection: Connection, _ mhdConnection: OpaquePointer) {
    guard let id = connection.requestID else { return }
    handler.finish(&response, of: id) { headerField("origin", of: mhdConnection) }
  }

  /// Answers a request that libmicrohttpd never hears of, and ends the connection behind it. Every earlier request on
  /// it has been answered.
  func refuse(_ connection: Connection, _ fault: RequestFault, _ marks: HeadMarks?, hasBody: Bool) {
    let id = marks?.requestID ?? connection.requestID ?? requestIDs.next()
    var response = handler.response(to: fault)
    handler.finish(&response, of: id) { marks?.origin }
    if let access = connection.access {
      // libmicrohttpd has the head already, and ends the request when it closes the connection.
      access.answered(response)
    } else if let accessLog, accessLog.isWanted {
      let access = AccessEntry(accessLog, client: connection.slot.address)
      access.record.id = id
      access.answered(response)
      access.end()
    }
    close(connection, behind: ClosingAnswer.bytes(response, id: id, hasBody: hasBody))
  }

  /// Sends the last bytes of a connection, past libmicrohttpd, which then closes its descriptor.
  private func close(_ connection: Connection, behind bytes: [UInt8]) {
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
      return sendHead(ofStream: fields, on: connection, version)
    }
    let descriptor = fcntl(connection.descriptor, F_DUPFD_CLOEXEC, 0)
    guard descriptor >= 0 else {
      conditions.note(.descriptors, client: connection.address)
      hub.abandon(stream)
      connection.exchange.responded()
      return send(handler.response(to: .overloaded), connection, mhdConnection)
    }
    connection.exchange.handedOff()
    connection.access?.record.status = 200
    stream.worker.attach(
      stream.id,
      SocketHandoff(
        descriptor: descriptor, isChunked: version == .http11,
        head: StreamHead.bytes(fields, version: version, requestID: connection.requestID), slot: connection.slot,
        access: connection.access))
    connection.access = nil
    return false
  }

  /// Sends what a stream begins with and ends the connection, past libmicrohttpd, which would name a length, or send a
  /// chunk behind the head.
  private func sendHead(ofStream fields: HTTPFields, on connection: Connection, _ version: HTTPVersion) -> Bool {
    connection.access?.record.status = 200
    close(connection, behind: StreamHead.bytes(fields, version: version, requestID: connection.requestID))
    return false
  }
}

import CMicrohttpd
import Glibc
import Synchronization

// What libmicrohttpd calls, on its own threads. `context` is the ServerContext that the Server keeps until the
// daemon has stopped; a socket context is a Connection, retained from its STARTED to its CLOSED notification.

private func server(_ context: UnsafeMutableRawPointer) -> ServerContext {
  Unmanaged<ServerContext>.fromOpaque(context).takeUnretainedValue()
}

private func connection(_ connection: OpaquePointer) -> Connection? {
  keyway_connection_context(connection).map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
}

func connectionChanged(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?,
  _ socketContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ change: MHD_ConnectionNotificationCode
) {
  guard let context, let mhdConnection, let socketContext else { return }
  if change == .CONNECTION_NOTIFY_STARTED {
    let connection = server(context).connectionOpened(
      descriptor: keyway_connection_socket(mhdConnection), daemon: keyway_connection_daemon(mhdConnection))
    socketContext.pointee = connection.map { Unmanaged.passRetained($0).toOpaque() }
  } else if let opaque = socketContext.pointee {
    socketContext.pointee = nil
    server(context).connectionClosed(Unmanaged<Connection>.fromOpaque(opaque).takeRetainedValue())
  }
}

func requestBegun(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ mhdConnection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  guard let context, let mhdConnection, let connection = connection(mhdConnection) else { return nil }
  let server = server(context)
  connection.begin(target: target.flatMap(requestTarget), limits: server.limits)
  if let log = server.accessLog, log.isWanted {
    connection.access = AccessEntry(log, client: connection.slot.address)
  }
  target.map(hideParameters)
  return nil
}

func handleRequest(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ bytes: UnsafePointer<CChar>?,
  _ byteCount: UnsafeMutablePointer<Int>?,
  _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let mhdConnection, let method, let byteCount, let connection = connection(mhdConnection) else {
    return .NO
  }
  let part = UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : byteCount.pointee)
  byteCount.pointee = 0
  let line = RequestLine(method: method, version: version)
  return server(context).advance(connection, mhdConnection, line, part) ? .YES : .NO
}

func requestCompleted(
  _ context: UnsafeMutableRawPointer?, _ mhdConnection: OpaquePointer?,
  _ requestContext: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ reason: MHD_RequestTerminationCode
) {
  guard let context, let mhdConnection, let connection = connection(mhdConnection) else { return }
  connection.finish(limits: server(context).limits)
}

/// Ends the target behind its question mark, for libmicrohttpd, which lends its own memory here and would now make a
/// record of each parameter: nobody asks for them, they cost time, and where there is no room for all of them, 0.9.75
/// never answers.
private func hideParameters(of target: UnsafePointer<CChar>) {
  guard let question = strchr(UnsafeMutablePointer(mutating: target), 0x3F), question[1] != 0 else { return }
  question[1] = 0
}

/// The target as text, which the gate has judged; `nil` if it is not UTF-8.
private func requestTarget(_ bytes: UnsafePointer<CChar>) -> String? { String(validatingCString: bytes) }

/// libmicrohttpd's recv(2) on a connection.
func receiveRequests(
  _ context: UnsafeMutableRawPointer?, _ descriptor: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int
) -> Int {
  guard let context else { return 0 }
  let connection = Unmanaged<Connection>.fromOpaque(context).takeUnretainedValue()
  return connection.receive(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
}

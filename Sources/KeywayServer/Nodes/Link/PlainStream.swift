import Support

/// The events of a stream that comes in chunks on a connection of its own.
final class PlainStream: NodeStream {
  private struct State {
    var chunks = ChunkedContent()
    /// Bytes that came with the head of the answer.
    var first: ArraySlice<UInt8>
    /// True once the other node has closed the connection.
    var isClosed = false

    /// Takes the chunks out of bytes. Nil if they have no content and do not end the stream.
    mutating func content(of bytes: ArraySlice<UInt8>) throws(NodeFault) -> [UInt8]? {
      var content: [UInt8] = []
      try chunks.take(bytes, into: &content)
      return content.isEmpty && !chunks.isOver ? nil : content
    }

    /// Takes the bytes that came with the head.
    mutating func takeFirst() throws(NodeFault) -> [UInt8]? {
      defer { first = [] }
      return first.isEmpty ? nil : try content(of: first)
    }
  }

  private let connection: NodeConnection
  private let state: Locked<State>

  /// Makes the stream of a connection, from the bytes that came behind the head of the answer.
  init(_ connection: NodeConnection, _ first: ArraySlice<UInt8>) {
    self.connection = connection
    state = Locked(State(first: first))
    connection.watchPeer()
  }

  var descriptor: Int32 { connection.descriptor }

  var isFinished: Bool { state.withLock { $0.isClosed || $0.chunks.isOver } }

  func receive(before deadline: ContinuousClock.Instant) throws(NodeFault) -> [UInt8] {
    if let content = try takeFirst() { return content }
    while !isFinished {
      if let content = try take(connection.receive(before: deadline)) { return content }
    }
    return []
  }

  func receiveNow() throws(NodeFault) -> [UInt8]? {
    if let content = try takeFirst() { return content }
    guard !isFinished else { return [] }
    guard let bytes = try connection.receiveNow() else { return nil }
    return try take(bytes)
  }

  private func takeFirst() throws(NodeFault) -> [UInt8]? {
    try state.withLock { state throws(NodeFault) in try state.takeFirst() }
  }

  private func take(_ bytes: [UInt8]) throws(NodeFault) -> [UInt8]? {
    try state.withLock { state throws(NodeFault) in
      if bytes.isEmpty {
        state.isClosed = true
        return []
      }
      return try state.content(of: bytes[...])
    }
  }
}

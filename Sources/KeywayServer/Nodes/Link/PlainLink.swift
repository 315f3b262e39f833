import Support

/// The way to a node that speaks plain HTTP, on connections of its own that are kept. Any thread; each waits for its
/// answer.
///
/// A request is sent once. It is sent once more, on a new connection, only where the first connection was kept from an
/// earlier request and has not taken it whole, so that the other node certainly did not receive it.
final class PlainLink: NodeLink {
  private struct Idle {
    let connection: NodeConnection
    let since: ContinuousClock.Instant
  }

  private struct State {
    var idle: [Idle] = []
    var busy: [ObjectIdentifier: NodeConnection] = [:]
    var isCut = false
  }

  private let address: NodeAddress
  private let state = Locked(State())
  /// The most connections that are kept.
  private let idleLimit: Int

  /// The time for which one is kept: shorter than servers keep theirs, so that they seldom close one that is about to
  /// be used.
  private static let idleTime = Duration.seconds(4)
  /// The time that connecting may take.
  private let connectTime: Duration

  /// A client that keeps so many connections, and waits so long for a new one.
  init(_ address: NodeAddress, keeping idleLimit: Int, connecting connectTime: Duration) {
    self.address = address
    self.connectTime = connectTime
    self.idleLimit = idleLimit
  }

  deinit { cut() }

  func send(
    _ request: NodeRequest, silence: Duration, _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    let bytes = request.bytes(to: address)
    if let kept = takeIdle() {
      do throws(NodeFault) {
        try kept.send(bytes, before: .now + silence)
      } catch {
        end(kept)
        guard error.isUnsent else { throw error }
        return try send(bytes, request.method, on: open(), silence, receive)
      }
      return try answer(to: request.method, on: kept, silence, receive)
    }
    return try send(bytes, request.method, on: open(), silence, receive)
  }

  func open(
    _ request: NodeRequest, silence: Duration, limit: Int
  ) throws(NodeFault) -> (answer: NodeAnswer, events: (any NodeStream)?) {
    let connection = try open()
    defer { end(connection) }
    try connection.send(request.bytes(to: address), before: .now + silence)
    var reader = NodeReader(connection, silence: silence)
    var answer = try reader.head()
    if answer.status == 200, answer.isEventStream, answer["Transfer-Encoding"]?.lowercased() == "chunked" {
      return (answer, PlainStream(connection, reader.rest))
    }
    var body: [UInt8] = []
    try reader.content(of: answer, to: request.method) { piece throws(NodeFault) in
      guard body.count + piece.count <= limit else { throw NodeFault("the answer has more than \(limit) bytes") }
      body.append(contentsOf: piece)
    }
    answer.body = body
    return (answer, nil)
  }

  func cut() {
    let connections = state.withLock { state in
      state.isCut = true
      state.idle = []
      return Array(state.busy.values)
    }
    for connection in connections { connection.cut() }
  }

  private func send(
    _ bytes: [UInt8], _ method: String, on connection: NodeConnection, _ silence: Duration,
    _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    do throws(NodeFault) {
      try connection.send(bytes, before: .now + silence)
    } catch {
      end(connection)
      throw error
    }
    return try answer(to: method, on: connection, silence, receive)
  }

  private func answer(
    to method: String, on connection: NodeConnection, _ silence: Duration,
    _ receive: (ArraySlice<UInt8>) throws(NodeFault) -> Void
  ) throws(NodeFault) -> NodeAnswer {
    var reader = NodeReader(connection, silence: silence)
    do throws(NodeFault) {
      let answer = try reader.answer(to: method, receive)
      let isKept = reader.isEmpty && answer["Connection"]?.lowercased() != "close"
      if isKept { keep(connection) } else { end(connection) }
      return answer
    } catch {
      end(connection)
      throw error
    }
  }

  // MARK: Connections

  private func takeIdle() -> NodeConnection? {
    state.withLock { state in
      while let idle = state.idle.popLast() {
        guard idle.since + Self.idleTime > .now, idle.connection.isOpen else { continue }
        state.busy[ObjectIdentifier(idle.connection)] = idle.connection
        return idle.connection
      }
      return nil
    }
  }

  private func open() throws(NodeFault) -> NodeConnection {
    let connection = try NodeConnection(address, before: .now + connectTime)
    let isCut = state.withLock { state in
      if !state.isCut { state.busy[ObjectIdentifier(connection)] = connection }
      return state.isCut
    }
    if isCut { throw NodeFault("this node is about to stop", isUnsent: true) }
    return connection
  }

  private func keep(_ connection: NodeConnection) {
    state.withLock { state in
      state.busy[ObjectIdentifier(connection)] = nil
      guard !state.isCut else { return }
      if state.idle.count >= idleLimit { state.idle.removeFirst() }
      state.idle.append(Idle(connection: connection, since: .now))
    }
  }

  private func end(_ connection: NodeConnection) {
    state.withLock { $0.busy[ObjectIdentifier(connection)] = nil }
  }
}

import Support

/// A limit on everything a client can make the server hold, and on how long.
package struct ServerLimits: Sendable {
  /// How many TCP connections may be open, event streams included. One more is closed as soon as it is accepted.
  /// Lowered at the start to what the descriptors of the process allow.
  package var connections = 16_384
  /// The same for one client address: seven eighths.
  package var connectionsPerAddress = 14_336
  /// The number of connections that are left to addresses with few; at most an eighth of all.
  package var reservedConnections = 2_048
  /// The number of first bits of an IPv6 address that tell one client from another.
  package var ipv6PrefixBits = 64
  /// How many bytes a second of one address, bodies and answers, are dealt with while others make requests as well.
  package var bytesPerSecond = 268_435_456
  /// How much of the time of the threads that read requests one address has while others make requests as well, in
  /// percent; a trusted proxy has all of it.
  package var timePercent = 50
  /// How many connections a second have their first request read, counted by five-hundredths of a second; a quarter of
  /// it while there are requests on connections that have begun before.
  package var beginningsPerSecond = 32_000
  /// How much of an answer the kernel takes beyond what it may send at once (`TCP_NOTSENT_LOWAT`).
  package var unsentBytes = 131_072
  /// How much of what a client has sent the kernel keeps until it is read (`SO_RCVBUF`).
  package var unreadBytes = 65_536
  /// What libmicrohttpd may allocate for a connection: the request line and all header lines have to fit, and the head
  /// of the response too.
  package var headerBytes = 8_192
  /// The longest request body. A longer one is answered with the fault `bodyTooLarge`.
  package var bodyBytes = 1_048_576
  /// How long a client may take to send one request, from its first known byte to its last.
  package var requestSeconds = 10
  /// How long a connection may stay open between two requests.
  package var keepAliveSeconds = 75
  /// Threads that read requests and run the handler; 0 means as many as there are cores.
  package var threads = 0
  /// How many event streams may be open at once.
  package var streams = 12_000
  /// The same for one client address: less than all, so that one client never takes every stream.
  package var streamsPerAddress = 10_500
  /// Threads that write to event streams; 0 means as many as there are cores.
  package var streamThreads = 0
  /// What may wait for one slow reader before its stream turns to lagging, or is ended as overflowed.
  package var pendingBytesPerStream = 262_144
  /// How long a stream may make no progress, or take to read its last events, before it is cut. A reader may well look
  /// away for a while: what waits for it is bounded.
  package var stallSeconds = 120
  /// After how long a silence a stream is sent a heartbeat.
  package var heartbeatSeconds = 15
  /// After how long a stream is ended so that its client comes back; 0 means never.
  package var lifetimeSeconds = 0

  /// The defaults.
  package init() {}

  /// Makes do with fewer connections; an address keeps a share of them that leaves some to others.
  mutating func lowerConnections(to count: Int) {
    guard count < connections else { return }
    connectionsPerAddress = min(connectionsPerAddress, max(1, count / 8 * 7))
    connections = count
  }

  var serverThreadCount: Int { threads > 0 ? threads : SystemThread.coreCount }

  var hubThreadCount: Int { streamThreads > 0 ? streamThreads : SystemThread.coreCount }
}

/// What a benchmark with slow readers does.
struct SlowReadersPlan: Hashable, Sendable {
  /// Where the server is.
  var address: SocketAddress
  /// How many subscribers there are.
  var subscribers: Int
  /// How many of them stop reading.
  var slow: Int
  /// How many values there are; each has as many subscribers as the others.
  var values: Int
  /// How many commits there are in a second, each of one value.
  var commitsPerSecond: Int
  /// How many connections publish.
  var publishers: Int
  /// How long each message is.
  var sizeBytes: Int
  /// How long everybody reads before some stop.
  var baselineSeconds: Int
  /// How long some do not read.
  var stopSeconds: Int
  /// The server's process, for its memory and CPU; nil where they are not asked for.
  var serverPID: Int?
  /// How long those that stopped may take to come to the present.
  var catchUpSeconds = 60
  /// How long an answer may take.
  var answerSeconds = 15

  /// What the kernel keeps for a reader that stops.
  static let slowReceiveBufferBytes: Int32 = 16_384

  /// The object of a value.
  func objectPath(_ value: Int) -> String { "/v1/objects/Note/slow-readers-\(value)" }

  /// The key path of a value.
  func path(_ value: Int) -> String { objectPath(value) + "/text" }

  /// The value that a subscriber observes.
  func value(of subscriber: Int) -> Int { subscriber % values }

  /// Whether a subscriber is one of those that stop: so many of the first, which are of different values.
  func isSlow(_ subscriber: Int) -> Bool { subscriber < slow }

  /// The subscribers as they come.
  var seats: [Audience.Seat] {
    (0..<subscribers).map { subscriber in
      Audience.Seat(
        request: address.subscription(path(value(of: subscriber))),
        receiveBufferBytes: isSlow(subscriber) ? Self.slowReceiveBufferBytes : nil,
        countsCoalesced: isSlow(subscriber))
    }
  }
}

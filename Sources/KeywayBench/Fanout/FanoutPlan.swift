/// What a fan-out benchmark does.
struct FanoutPlan: Hashable, Sendable {
  /// Where the server is.
  var address: SocketAddress
  /// The path that is subscribed to and set.
  var path: String
  /// How many subscribers there are.
  var subscribers: Int
  /// How many messages are published.
  var messages: Int
  /// How long each message is.
  var sizeBytes: Int
  /// The pause between messages; 0 publishes as fast as answers come.
  var intervalMicroseconds = 0
  /// How long the subscribers idle before the first message.
  var idleSeconds = 0
  /// The server's process, for its memory and CPU; nil where they are not asked for.
  var serverPID: Int?
  /// No progress for so long ends the benchmark.
  var stallSeconds = 15

  /// The request of every subscriber.
  var subscription: [UInt8] { address.subscription(path) }

  /// The request that publishes the message with this number.
  func publication(_ number: UInt64) -> [UInt8] { address.publication(path, number, sizeBytes: sizeBytes) }
}

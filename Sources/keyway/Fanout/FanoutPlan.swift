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
  var subscription: [UInt8] {
    Array(
      """
      GET \(path)?options=new HTTP/1.1\r
      Host: \(address.hostField)\r
      Accept: text/event-stream\r
      \r

      """.utf8)
  }

  /// The request that publishes the message with this number.
  func publication(_ number: UInt64) -> [UInt8] {
    let digits = String(number)
    let zeros = String(repeating: "0", count: max(0, MessageScanner.digitCount - digits.count))
    let mark = "@@\(zeros)\(digits)@"
    let filling = String(repeating: "x", count: max(0, sizeBytes - mark.utf8.count))
    let body = "\"\(mark)\(filling)\""
    return Array(
      """
      PUT \(path) HTTP/1.1\r
      Host: \(address.hostField)\r
      Content-Type: application/json\r
      Content-Length: \(body.utf8.count)\r
      \r
      \(body)
      """.utf8)
  }
}

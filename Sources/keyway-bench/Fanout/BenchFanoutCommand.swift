import ArgumentParser
import CommandSupport
import KeywayClient
import TestKit

/// `keyway-bench fanout`: one writer, many subscribers.
struct BenchFanoutCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanout",
    abstract: "Opens many subscribers of one value, sets it again and again, and checks and times every delivery.",
    discussion: """
      keyway-bench fanout --subscribers 8000 --messages 50 --size 100 --pid $(pidof keyway)

      Without --interval it is a burst, and a server may put many messages into one send: deliveries/s then tells how
      well it batches, and compares only with servers that batch alike. With --interval each message is a send of its
      own. CPU time comes in ticks of 10 ms, so a run of less than a second of it is a rough figure.

      Exits with 1 if any subscriber missed a message, got one twice, or got them out of order.
      """)

  @Option(help: "How many subscribers.")
  var subscribers = 1000

  @Option(help: "How many messages are published.")
  var messages = 20

  @Option(help: ArgumentHelp("How long a message is.", valueName: "bytes"))
  var size = 100

  @Option(help: ArgumentHelp("The pause between messages: latency instead of throughput.", valueName: "microseconds"))
  var interval = 0

  @Option(help: "The key path that is set and observed; its object is created where it does not exist.")
  var path = "/v1/objects/Note/1/text"

  @Option(help: ArgumentHelp("How long the subscribers idle before the first message.", valueName: "seconds"))
  var idle = 0

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--messages", messages, 1...10_000_000),
      ("--size", size, 22...1_000_000), ("--interval", interval, 0...10_000_000), ("--idle", idle, 0...3600),
    ])
    guard object != nil else { throw ValidationError("--path names an object and a key of it, as in Note/1/text") }
  }

  func run() throws {
    let address = try client.socketAddress
    try makeObject(address)
    var run = try FanoutRun(self, address)
    try report.show(try run.run())
  }

  /// The path of the object, and the key; nil where `path` names something else.
  private var object: (path: String, key: String)? {
    let parts = ResourcePath.path(path).split(separator: "/")
    guard parts.count == 5, parts[0] == "v1", parts[1] == "objects" else { return nil }
    return ("/" + parts[..<4].joined(separator: "/"), String(parts[4]))
  }

  /// Creates the object that the path belongs to, unless it exists.
  private func makeObject(_ address: SocketAddress) throws {
    guard let object else { return }
    let connection = try WireConnection(address, timeoutSeconds: client.timeout)
    guard try connection.exchange(WireRequest("GET", object.path)).status == 404 else { return }
    try connection.must(.setting(object.path, #"{"\#(object.key)":""}"#))
  }
}

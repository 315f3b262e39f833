import ArgumentParser
import CommandSupport
import KeyValueModel
import KeywayClient

/// `keyway bench fanout`: one writer, many subscribers.
struct BenchFanoutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fanout",
    abstract: "Opens many subscribers of one value, sets it again and again, and checks and times every delivery.",
    discussion: """
      keyway bench fanout --subscribers 8000 --messages 50 --size 100 --pid $(pidof keyway)

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

  @Flag(help: "Print the figures as one JSON object.")
  var json = false

  @OptionGroup var options: ClientOptions

  func validate() throws {
    let ranges = [
      ("--subscribers", subscribers, 1...60_000), ("--messages", messages, 1...10_000_000),
      ("--size", size, 22...1_000_000), ("--interval", interval, 0...10_000_000), ("--idle", idle, 0...3600),
    ]
    for (name, value, range) in ranges where !range.contains(value) {
      throw ValidationError("\(name) is between \(range.lowerBound) and \(range.upperBound)")
    }
    guard object != nil else { throw ValidationError("--path names an object and a key of it, as in Note/1/text") }
  }

  func run() async throws {
    let path = ResourcePath.path(path)
    let plan = FanoutPlan(
      address: try SocketAddress(server: options.address), path: path, subscribers: subscribers, messages: messages,
      sizeBytes: size, intervalMicroseconds: interval, idleSeconds: idle, serverPID: pid)
    try await makeObject()
    let report = try Self.measure(plan)
    print(json ? report.json : report.text)
    guard report.isFaultless else { throw ExitCode.failure }
  }

  /// Blocks its thread for as long as the benchmark takes; nothing else of this process wants one.
  private static func measure(_ plan: FanoutPlan) throws(FanoutError) -> FanoutReport {
    var run = try FanoutRun(plan)
    return try run.run()
  }

  /// The path of the object, and the key; nil where `path` names something else.
  private var object: (path: String, key: String)? {
    let parts = ResourcePath.path(path).split(separator: "/")
    guard parts.count == 5, parts[0] == "v1", parts[1] == "objects" else { return nil }
    return ("/" + parts[..<4].joined(separator: "/"), String(parts[4]))
  }

  /// Creates the object that the path belongs to, unless it exists.
  private func makeObject() async throws {
    guard let object else { return }
    let client = try options.client()
    guard try await client.request("GET", object.path).status == 404 else { return }
    let body = Value.object([object.key: .string("")]).json
    _ = try await client.send("PUT", object.path, body: Array(body.utf8))
  }
}

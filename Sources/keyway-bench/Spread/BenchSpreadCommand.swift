import ArgumentParser
import CommandSupport
import TestKit

/// `keyway-bench spread`: many streams, each of something else.
struct BenchSpreadCommand: ParsableCommand {
  /// What a stream observes.
  enum Subject: String, CaseIterable, ExpressibleByArgument {
    /// One key of one object.
    case objects
    /// A live query with a filter of its own: one value of an indexed key, and a range of another key.
    case queries
  }

  static let configuration = CommandConfiguration(
    commandName: "spread",
    abstract:
      "Has every subscriber observe something else, and measures commits to all of it and to one after another.",
    discussion: """
      keyway-bench spread --subscribers 12000 --objects 12000 --rate 10000 --pid $(pidof keyway)
      keyway-bench spread --watch queries --subscribers 2000 --objects 100000 --rate 5000

      Subscribers are spread evenly over so many objects: each observes a key of one of them, or a live query that a
      range of them meets. First objects are set in a random order, at a fixed rate, while nobody subscribes; then the
      same again while all do. Last come transactions that each set one object of each of so many subscribers: their
      time is from the request to the last delivery. What is received is checked against what was published.

      Exits with 1 if a subscriber received anything wrong. Figures are printed and not judged.
      """)

  @Option(help: "How many subscribers.")
  var subscribers = 12_000

  @Option(help: "How many objects there are.")
  var objects = 12_000

  @Option(help: "What a subscriber observes: objects or queries.")
  var watch = Subject.objects

  @Option(help: ArgumentHelp("How many commits of one object each.", valueName: "per second"))
  var rate = 10_000

  @Option(help: "How many connections publish.")
  var publishers = 32

  @Option(
    help: ArgumentHelp(
      "How long objects are set at that rate, without subscribers and with them.", valueName: "seconds"))
  var seconds = 10

  @Option(help: "How many subscribers a transaction of all concerns.")
  var together = 8000

  @Option(help: "How many such transactions; 0 for none.")
  var rounds = 9

  @Option(help: ArgumentHelp("How long a message is.", valueName: "bytes"))
  var size = 24

  @Option(help: "What the random order comes from.")
  var seed: UInt64 = 1

  @Option(help: "The server's process, for its memory and CPU.")
  var pid: Int?

  @OptionGroup var report: ReportOptions

  @OptionGroup var client: ClientOptions

  func validate() throws {
    try ReportOptions.check([
      ("--subscribers", subscribers, 1...60_000), ("--objects", objects, subscribers...1_000_000),
      ("--rate", rate, 1...100_000), ("--publishers", publishers, 1...min(objects, 1000)),
      ("--seconds", seconds, 1...3600),
      ("--together", together, 1...60_000), ("--rounds", rounds, 0...10_000), ("--size", size, 22...80),
    ])
  }

  func run() throws {
    var run = try SpreadRun(self, try client.socketAddress)
    try report.show(try run.run())
  }

  /// How many values the indexed key has: pairs of letters.
  private static let stateCount = 26 * 26

  /// The name of an object.
  func name(_ object: Int) -> String { "Airport/spread-\(object)" }

  /// What an object is made of: the keys that queries look at.
  func values(_ object: Int) -> String {
    #"{"name":"","iata":"\#(Self.code(object))","state":"\#(Self.state(object / objectsEach))"}"#
  }

  /// The path of the key of an object that is set.
  func path(_ object: Int) -> String { "/v1/objects/\(name(object))/\(key)" }

  /// The key that is set.
  var key: String { "city" }

  /// The objects that a subscriber hears of; those beyond the last range belong to no subscriber.
  func objects(of subscriber: Int) -> Range<Int> { subscriber * objectsEach..<(subscriber + 1) * objectsEach }

  private var objectsEach: Int { watch == .objects ? 1 : objects / subscribers }

  /// What a subscriber asks for.
  func target(of subscriber: Int) -> String {
    let objects = objects(of: subscriber)
    switch watch {
    case .objects: return path(objects.lowerBound) + "?options=new"
    case .queries:
      let (first, end) = (Self.code(objects.lowerBound), Self.code(objects.upperBound))
      let filter = "state=='\(Self.state(subscriber))'%26%26iata>='\(first)'%26%26iata<'\(end)'"
      return "/v1/objects/Airport?keys=\(key)&filter=\(filter)"
    }
  }

  private static func state(_ subscriber: Int) -> String {
    let letters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    let number = subscriber % stateCount
    return "\(letters[number / 26])\(letters[number % 26])"
  }

  /// Four letters and digits, in the order of the numbers.
  private static func code(_ number: Int) -> String {
    let digits = String(number, radix: 36, uppercase: true)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }
}

/// What a crash test does.
struct CrashPlan: Hashable, Sendable {
  /// How long the server may take to answer, to come up, or to send what it has to send.
  static let patienceSeconds = 20.0

  /// How many times the server is ended and started again.
  var rounds: Int
  /// Where the randomness begins: which operations there are, and when and how the server is ended. What the threads
  /// make of it is not in its hands.
  var seed: UInt64
  /// Where everything is kept: the schema, the store, what the server writes.
  var directory: String
  /// How many connections write, each to objects of its own.
  var writers: Int
  /// The program whose `serve` is tested.
  var program: String

  /// The schema file, the store and the server's log in `directory`.
  var schemaFile: String { directory + "/schema.yaml" }
  var store: String { directory + "/store" }
  var logFile: String { directory + "/server.log" }
}

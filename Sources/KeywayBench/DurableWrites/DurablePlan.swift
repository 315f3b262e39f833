/// What a benchmark of durable writes does.
struct DurablePlan: Hashable, Sendable {
  /// The servers, in the order in which they take turns.
  var peers = WritePeer.Kind.allCases
  /// How many rounds there are; in each of them everything is measured once.
  var rounds = 3
  /// How long each measurement takes.
  var seconds = 2.0
  /// How long each loop runs before it is measured.
  var warmUpSeconds = 0.3
  /// How many connections write at once, besides one alone.
  var connections = 64
  /// How many read.
  var readers = 64
  /// How many write while others read.
  var writers = 16
  /// How many keys are written.
  var keys = 100
  /// How long a value is.
  var sizeBytes = 100
  /// Where the directory is made in which all servers keep their data.
  var directory: String
  /// This program.
  var keywayExecutable: String
  /// A schema with a `Note` that has a `text`.
  var schema: String
  /// What `keyway serve` is given as its store; nil for a directory of the benchmark.
  var keywayStore: String?

  /// How long the disk alone is measured, in each of two ways and in each round.
  static let diskSeconds = 0.25
  /// How long everything rests between two measurements: what one server left to be done shall not slow the next.
  static let restMicroseconds: UInt32 = 200_000
}

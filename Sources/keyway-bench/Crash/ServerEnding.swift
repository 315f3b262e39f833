import TestKit

/// How one life of the server ends.
enum ServerEnding: Hashable, Sendable, CaseIterable {
  /// SIGKILL at any moment.
  case killed
  /// SIGKILL when the files of the store have just changed in number: a snapshot is made, or an old one goes.
  case killedWhileTidying
  /// SIGTERM, and time to drain.
  case drained
  /// SIGTERM, and SIGKILL before the drain is over.
  case killedWhileDraining

  /// One of them, most often the first.
  static func random(using random: inout SplitMix64) -> ServerEnding {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<12: .killed
    case 12..<15: .killedWhileTidying
    case 15..<18: .drained
    default: .killedWhileDraining
    }
  }
}

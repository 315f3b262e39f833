import Glibc

/// Why a conversation with the server, or the test itself, cannot go on.
enum CrashError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Nobody listens.
  case refused
  /// The connection ended before the answer did: whatever was asked may have been done or not.
  case disconnected(String)
  /// The server is there and says nothing.
  case timedOut(String)
  /// The server was not there and did not come.
  case notUp(String)
  /// What came is no HTTP, or no event stream.
  case malformed(String)
  /// A system call of the test's own failed.
  case system(String)

  /// A failed system call, with what errno says.
  static func call(_ name: String) -> CrashError { .system("\(name): \(String(cString: strerror(errno)))") }

  /// The error as a sentence.
  var description: String {
    switch self {
    case .refused: "the connection was refused"
    case .disconnected(let detail): "the connection ended: \(detail)"
    case .timedOut(let detail): "no answer in time: \(detail)"
    case .notUp(let detail): "the server did not come up: \(detail)"
    case .malformed(let detail): "malformed: \(detail)"
    case .system(let detail): detail
    }
  }
}

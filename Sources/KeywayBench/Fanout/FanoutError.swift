import Glibc

/// Why a benchmark could not be run to its end.
struct FanoutError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What failed.
  var description: String

  /// A failure in words.
  init(_ description: String) { self.description = description }

  /// A failed system call, with what errno says.
  init(call: String) { description = "\(call): \(String(cString: strerror(errno)))" }
}

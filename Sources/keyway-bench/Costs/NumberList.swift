import ArgumentParser

/// Numbers as an option takes them, separated by commas.
struct NumberList: ExpressibleByArgument, CustomStringConvertible {
  let numbers: [Int]

  init(_ numbers: Int...) { self.numbers = numbers }

  init?(argument: String) {
    numbers = argument.split(separator: ",", omittingEmptySubsequences: false).compactMap { Int($0) }
    guard numbers.count == argument.split(separator: ",", omittingEmptySubsequences: false).count else { return nil }
  }

  var description: String { numbers.map(String.init).joined(separator: ",") }

  var defaultValueDescription: String { description }

  /// Throws where a number is out of the range of the option with this name.
  func check(_ name: String, _ range: ClosedRange<Int>) throws {
    try ReportOptions.check(numbers.map { ("each number of \(name)", $0, range) })
  }
}

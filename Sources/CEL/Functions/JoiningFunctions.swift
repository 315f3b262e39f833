/// Functions that take strings apart and put them together.
enum JoiningFunctions {
  static let all = [join, replace, split]

  private static let join = FunctionDefinition(
    "join", [([.list(.string)], .string), ([.list(.string), .string], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let list = try arguments.list(0)
    let separator = try arguments.count > 1 ? arguments.string(1) : ""
    var joined = ""
    for index in 0..<list.count {
      guard case .string(let part) = try list.element(at: index) else { throw arguments.mismatch }
      try budget.spend(bytes: part.utf8.count + separator.utf8.count)
      if index > 0 { joined += separator }
      joined += part
    }
    return .string(joined)
  }

  private static let replace = FunctionDefinition(
    "replace", [([.string, .string, .string], .string), ([.string, .string, .string, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, old, new) = (try arguments.string(0), try arguments.string(1), try arguments.string(2))
    let limit = try arguments.optionalInt(3)
    let pieces = try pieces(of: text, by: old, limit: limit.map { $0 < 0 ? $0 : $0.saturatingSuccessor }, &budget)
    // An empty text stands before and after each character.
    let isBetween = old.isEmpty
    let edges = isBetween ? min(pieces.count + 1, limit.flatMap { $0 < 0 ? nil : Int(clamping: $0) } ?? .max) : 0
    try budget.spend(bytes: text.utf8.count)
    try budget.spend(cost: new.utf8.count / EvaluationBudget.bytesPerUnit + 1, times: max(pieces.count - 1, edges))
    guard isBetween else { return .string(pieces.joined(separator: new)) }
    return .string(surrounded(text, new, edges))
  }

  /// `text` with `new` before its first characters, and after the last, `count` times in all.
  private static func surrounded(_ text: String, _ new: String, _ count: Int) -> String {
    var result = ""
    var left = count
    for scalar in text.unicodeScalars {
      if left > 0 { result += new }
      left -= 1
      result.unicodeScalars.append(scalar)
    }
    return left > 0 ? result + new : result
  }

  private static let split = FunctionDefinition(
    "split", [([.string, .string], .list(.string)), ([.string, .string, .int], .list(.string))]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, separator) = (try arguments.string(0), try arguments.string(1))
    let limit = try arguments.optionalInt(2)
    return .list(try pieces(of: text, by: separator, limit: limit, &budget).map { .string($0) })
  }

  /// The parts of `text` between separators, at most `limit` when that is not negative, the last with all the rest. By
  /// an empty separator these are the characters.
  private static func pieces(
    of text: String, by separator: String, limit: Int64?, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> [String] {
    let most = limit.flatMap { $0 < 0 ? nil : Int(clamping: $0) } ?? .max
    try budget.spend(bytes: text.utf8.count + separator.utf8.count)
    guard most > 0 else { return [] }
    let (bytes, needle) = (Array(text.utf8), Array(separator.utf8))
    var ends: [(end: Int, next: Int)] = []
    if needle.isEmpty {
      var place = 0
      for scalar in text.unicodeScalars.dropLast() where ends.count < most - 1 {
        place += UTF8.width(scalar)
        ends.append((place, place))
      }
    } else {
      var next = 0
      SubstringSearch(needle).forEachMatch(in: bytes) { place in
        guard place >= next else { return true }
        guard ends.count < most - 1 else { return false }
        next = place + needle.count
        ends.append((place, next))
        return true
      }
    }
    if needle.isEmpty, bytes.isEmpty { return [] }
    try budget.spend(ends.count + 1)
    var start = 0
    var pieces: [String] = []
    for (end, next) in ends {
      pieces.append(String(decoding: bytes[start..<end], as: UTF8.self))
      start = next
    }
    return pieces + [String(decoding: bytes[start...], as: UTF8.self)]
  }
}

extension Int64 {
  fileprivate var saturatingSuccessor: Int64 { self == .max ? self : self + 1 }
}

extension EvaluationBudget {
  /// Spends `cost` as many `times`.
  fileprivate mutating func spend(cost: Int, times: Int) throws(EvaluationError) {
    let (total, overflow) = cost.multipliedReportingOverflow(by: times)
    try spend(overflow ? .max : total)
  }
}

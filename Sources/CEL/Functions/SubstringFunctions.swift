/// Functions of a string's characters by their places, which are counted in Unicode scalars.
enum SubstringFunctions {
  static let all = [charAt, indexOf, lastIndexOf, substring]

  private static let charAt = FunctionDefinition(
    "charAt", [([.string, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let scalars = try scalars(arguments.string(0), &budget)
    let index = try checked(arguments.int(1), scalars.count)
    return .string(index == scalars.count ? "" : String(scalars[index]))
  }

  private static let indexOf = FunctionDefinition(
    "indexOf", [([.string, .string], .int), ([.string, .string, .int], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, part) = (try arguments.string(0), try arguments.string(1))
    let (scalars, needle) = (try scalars(text, &budget), try scalars(part, &budget))
    let start = try place(arguments, scalars.count) ?? 0
    return .int(Int64(SubstringSearch(needle).first(in: scalars, from: start) ?? -1))
  }

  private static let lastIndexOf = FunctionDefinition(
    "lastIndexOf", [([.string, .string], .int), ([.string, .string, .int], .int)]
  ) { (arguments, budget) throws(EvaluationError) in
    let (text, part) = (try arguments.string(0), try arguments.string(1))
    let (scalars, needle) = (try scalars(text, &budget), try scalars(part, &budget))
    let end = try place(arguments, scalars.count) ?? scalars.count
    if needle.isEmpty { return .int(Int64(end)) }
    var last = -1
    SubstringSearch(needle).forEachMatch(in: scalars) { place in
      if place <= end { last = place }
      return place < end
    }
    return .int(Int64(last))
  }

  private static let substring = FunctionDefinition(
    "substring", [([.string, .int], .string), ([.string, .int, .int], .string)]
  ) { (arguments, budget) throws(EvaluationError) in
    let scalars = try scalars(arguments.string(0), &budget)
    let start = try checked(arguments.int(1), scalars.count)
    let end = try place(arguments, scalars.count) ?? scalars.count
    guard start <= end else { throw .invalid("substring(): the start \(start) is after the end \(end)") }
    return .string(String(String.UnicodeScalarView(scalars[start..<end])))
  }

  private static func scalars(
    _ text: String, _ budget: inout EvaluationBudget
  ) throws(EvaluationError) -> [Unicode.Scalar] {
    try budget.spend(bytes: text.utf8.count * 4)
    return Array(text.unicodeScalars)
  }

  /// The third argument as a place, nil when there is none.
  private static func place(_ arguments: FunctionArguments, _ count: Int) throws(EvaluationError) -> Int? {
    guard let place = try arguments.optionalInt(2) else { return nil }
    return try checked(place, count)
  }

  private static func checked(_ place: Int64, _ count: Int) throws(EvaluationError) -> Int {
    guard let index = Int(exactly: place), (0...count).contains(index) else {
      throw .invalid("the place \(place) is not in a string of \(count) characters")
    }
    return index
  }
}

/// All functions: the language's own, those on strings, and Keyway's on lists.
///
/// To add a function, write its `FunctionDefinition` (name, overloads, implementation) in a file of this folder and
/// register it here: among `globals` when it is called as `name(value)`, among `members` when as `value.name()`, or
/// both. Checking, evaluation and the limits follow from the definition.
enum FunctionLibrary {
  /// What a call is looked up by.
  private struct Key: Hashable {
    let name: String
    let isMember: Bool
  }

  private static let functions: [Key: FunctionDefinition] = {
    var table: [Key: FunctionDefinition] = [:]
    for definition in globals { table[Key(name: definition.name, isMember: false)] = definition }
    for definition in members { table[Key(name: definition.name, isMember: true)] = definition }
    return table
  }()

  private static var globals: [FunctionDefinition] {
    ConversionFunctions.all + AggregateFunctions.all + MathFunctions.all
      + [SizeFunction.size, MatchFunction.matches, QuoteFunction.quote]
  }

  private static var members: [FunctionDefinition] {
    StringFunctions.all + SubstringFunctions.all + JoiningFunctions.all + TimestampFunctions.all
      + [SizeFunction.size, MatchFunction.matches, FormatFunction.format]
  }

  /// The function `name`, called with a receiver or without; nil when there is none.
  static func function(_ name: String, isMember: Bool) -> FunctionDefinition? {
    functions[Key(name: name, isMember: isMember)]
  }
}

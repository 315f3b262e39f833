/// What a name in an expression stands for.
enum NameMeaning: Sendable {
  /// A variable of the environment, whose name may hold dots, and its number or -1.
  case variable(String, index: Int)
  /// A comprehension's variable, by its number.
  case local(Int)
  /// A type as a value.
  case type(String)
  /// The key of an object with this number or -1.
  case field(index: Int)
  /// A function of the library.
  case function(FunctionDefinition)
  /// The number of the variable that a comprehension binds.
  case binds(Int)
  /// Nothing: evaluation fails with this message.
  case nothing(String)
}

/// The syntax tree of a pattern.
indirect enum RegexNode {
  case set(ScalarSet)
  case assertion(RegexAssertion)
  case sequence([RegexNode])
  case alternatives([RegexNode])
  /// At least `from` and at most `through` times, or any number of times more.
  case repetition(RegexNode, from: Int, through: Int?)
}

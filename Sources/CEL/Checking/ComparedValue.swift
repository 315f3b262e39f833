/// What stands on the other side of a comparison with a literal, as far as more than its type is known of it.
package enum ComparedValue: Sendable {
  /// A variable of the environment.
  case variable(String)
  /// A key of an object of the entity.
  case field(String, inObject: String)
  /// A member of a variable of the environment.
  case memberOfVariable(String)
  /// A member of a key of an object of the entity.
  case memberOfField(String, inObject: String)
  /// An object of the entity.
  case object(String)
  /// A whole number that is neither; not a negative one where it is no `int` but a `uint`.
  case whole(isSigned: Bool)
}

/// What stands on the other side of a comparison with a literal, as far as more than its type is known of it.
package enum ComparedValue: Sendable {
  /// A variable of the environment.
  case variable(String)
  /// A key of an object of the entity.
  case field(String, inObject: String)
  /// An object of the entity.
  case object(String)
}

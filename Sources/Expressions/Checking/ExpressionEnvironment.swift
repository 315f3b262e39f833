/// The names that an expression may use, and their types.
package protocol ExpressionEnvironment {
  /// The type of the variable `name`, nil when there is none. A name may hold dots: `a.b.c` is looked up as a variable
  /// `a.b.c` first, then as `c` of `a.b`, then as `b.c` of `a` (CEL language definition, Name Resolution).
  func type(ofVariable name: String) -> ExpressionType?
  /// A number for the variable that evaluation asks for it with, nil to be asked by name.
  func index(ofVariable name: String) -> Int?
  /// The type of the key `name` of the entity `object`, nil when the entity has no such key.
  func type(ofField name: String, inObject object: String) -> ExpressionType?
  /// A number for the key that evaluation asks for it with, nil to be asked by name.
  func index(ofField name: String, inObject object: String) -> Int?
}

extension ExpressionEnvironment {
  /// None: by name.
  package func index(ofVariable name: String) -> Int? { nil }
  /// None: by name.
  package func index(ofField name: String, inObject object: String) -> Int? { nil }
}

import ArgumentParser
import KeyValueModel

/// An object as an argument names it.
enum ObjectName {
  /// The reference of `text`. Throws a `ValidationError` that says what it lacks.
  static func reference(_ text: String) throws -> Reference {
    if let reference = Reference(text) { return reference }
    guard text.contains("/") else {
      throw ValidationError("an object is written Entity/id, such as \(text)/1; \(text) has no id")
    }
    throw ValidationError(
      "\(text) is no object: it is written Entity/id, with an id of letters, digits and . _ ~ - of ASCII")
  }
}

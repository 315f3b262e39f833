import KeyValueModel

/// The parameters that name members of a to-many.
extension Target {
  /// `index=0,2`: places; nil where it is not there. Whether there are such places is the model's to say.
  func indexes() throws(Problem) -> [Int]? {
    guard let texts = list("index") else { return nil }
    var indexes: [Int] = []
    for text in texts {
      guard (text.hasPrefix("-") ? text.dropFirst() : text[...]).isDecimal else {
        throw Problem(.malformedQuery, "index: '\(text)' is no whole number")
      }
      // A number that is too long names no place either.
      indexes.append(Int(text) ?? .max)
    }
    return indexes
  }

  /// `object=Employee/3,Employee/4`: references; nil where it is not there.
  func references() throws(Problem) -> [Value]? {
    guard let texts = list("object") else { return nil }
    var references: [Value] = []
    for text in texts {
      guard let reference = Reference(text) else {
        throw Problem(.malformedQuery, "object: '\(text)' is no reference such as Employee/3")
      }
      references.append(.reference(reference))
    }
    return references
  }

  /// `value=JSON`: one value, or an array of them; nil where it is not there.
  func values() throws(Problem) -> [Value]? {
    guard let text = self["value"] else { return nil }
    do throws(JSONError) {
      return MemberReader.values(try Value(json: text))
    } catch {
      throw Problem(.malformedQuery, "value: \(error.description)")
    }
  }

  /// Throws `malformed-query` where more than one of the parameters is there.
  func allowOneOf(_ names: String...) throws(Problem) {
    let given = names.filter { self[$0] != nil }
    if given.count > 1 { throw Problem(.malformedQuery, "\(given.joined(separator: " and ")) do not go together") }
  }
}

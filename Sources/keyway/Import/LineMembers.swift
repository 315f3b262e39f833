import KeyValueModel

/// The members of one line of JSON, which are taken by their names, or by paths into the objects inside of it.
struct LineMembers {
  /// What has not been taken yet.
  private(set) var rest: JSONObject

  init(_ members: JSONObject) {
    rest = members
  }

  /// Takes the member of a name, else that of a path such as `profile.name`; an object that is empty without it goes
  /// too. Nil where there is none.
  mutating func take(_ path: String) -> Value? { Self.take(path[...], from: &rest) }

  /// The member of a name or a path, which stays; nil where there is none.
  func value(_ path: String) -> Value? {
    var copy = self
    return copy.take(path)
  }

  private static func take(_ path: Substring, from object: inout JSONObject) -> Value? {
    if let value = object[String(path)] {
      object[String(path)] = nil
      return value
    }
    for dot in path.indices where path[dot] == "." {
      let head = String(path[..<dot])
      guard case .object(var inner)? = object[head] else { continue }
      guard let value = take(path[path.index(after: dot)...], from: &inner) else { continue }
      object[head] = inner.members.isEmpty ? nil : .object(inner)
      return value
    }
    return nil
  }
}

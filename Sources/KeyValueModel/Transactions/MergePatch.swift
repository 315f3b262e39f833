/// JSON merge patch (RFC 7396 §2).
enum MergePatch {
  /// `MergePatch(Target, Patch)` of the standard.
  static func merging(_ patch: Value, into target: Value) -> Value {
    guard case .object(let patch) = patch else { return patch }
    var merged = JSONObject()
    if case .object(let object) = target { merged = object }
    for name in patch.members.keys {
      guard let value = patch[name], !value.isNull else {
        merged[name] = nil
        continue
      }
      merged[name] = merging(value, into: merged[name] ?? .null)
    }
    return .object(merged)
  }
}

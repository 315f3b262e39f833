/// JSON merge patch (RFC 7396 §2).
enum MergePatch {
  /// `MergePatch(Target, Patch)` of the standard. `steps` grows by what it takes: a target is copied, and from many
  /// members one is not removed at once.
  static func merging(_ patch: Value, into target: Value, steps: inout Int) -> Value {
    guard case .object(let patch) = patch else { return patch }
    var merged = JSONObject()
    if case .object(let object) = target { merged = object }
    steps += patch.members.count + TransactionBudget.steps(of: merged.members.count)
    for name in patch.members.keys {
      guard let value = patch[name], !value.isNull else {
        if merged[name] != nil { steps += TransactionBudget.steps(of: merged.members.count) }
        merged[name] = nil
        continue
      }
      merged[name] = merging(value, into: merged[name] ?? .null, steps: &steps)
    }
    return .object(merged)
  }
}

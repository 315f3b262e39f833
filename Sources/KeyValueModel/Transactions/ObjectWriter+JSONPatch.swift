/// JSON Patch (RFC 6902) on objects.
extension ObjectWriter {
  /// Works on the object as `GET` gives it; each key that the patch names is set to what becomes of it. `prepared` is
  /// that, where it was worked out before and the object is still the same.
  mutating func apply(
    _ patch: JSONPatch, _ prepared: PreparedPatch?, to reference: Reference
  ) throws(ModelError) {
    let record = try editor.state.requireRecord(reference)
    let patched: ObjectPatch
    if let prepared, prepared.holds(for: record) {
      // Its steps were within the limit, and not on the writer.
      patched = try prepared.result.get()
    } else {
      patched = try ObjectPatch(
        patch, of: reference, record, in: editor.state, budget: editor.budget,
        without: keysLeftAlone, closed: closedKeys)
      editor.budget.spend(patched.steps)
    }
    isChecked = patched.isChecked
    for setting in patched.settings {
      if isChecked, let size = setting.size, let record = editor.state.record(reference) {
        editor.store(setting.value, in: reference, record, key: setting.key, size: size)
      } else {
        try assign(setting.value, to: reference, key: setting.key)
      }
    }
  }
}

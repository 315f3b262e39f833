/// JSON Patch (RFC 6902) on objects.
extension ObjectWriter {
  /// Works on the object as `GET` gives it; each key that the patch names is set to what becomes of it.
  mutating func apply(_ patch: JSONPatch, to reference: Reference) throws(ModelError) {
    let record = try editor.state.requireRecord(reference)
    let patched = try ObjectPatch(patch, of: reference, record, in: editor.state, budget: editor.budget)
    editor.budget.spend(patched.steps)
    for setting in patched.settings { try assign(setting.value, to: reference, key: setting.key) }
  }
}

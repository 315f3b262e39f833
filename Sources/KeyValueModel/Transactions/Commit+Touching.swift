extension Commit {
  /// Gives every object that the commit can notify the observers of: those that it wrote, and those with a key that it
  /// bracketed, since a bracket is a change even where nothing was written inside. Some may be given more than once.
  package func forEachTouchedObject(_ body: (Reference) -> Void) {
    if let setting = plainSetting { return body(setting.object) }
    for entry in before { body(entry.object) }
    for step in steps {
      if case .willChange(let object, _) = step.kind { body(object) }
    }
  }

  /// Whether the commit touches an object that is wanted; see `forEachTouchedObject(_:)`.
  package func touchesObject(where isWanted: (Reference) -> Bool) -> Bool {
    if let setting = plainSetting { return isWanted(setting.object) }
    if before.contains(where: { isWanted($0.object) }) { return true }
    return steps.contains { step in
      if case .willChange(let object, _) = step.kind { isWanted(object) } else { false }
    }
  }
}

import Expressions

/// Who writes a transaction, where rules are asked about it (the specification, section 11). They are asked on the
/// writer, of the state that the transaction meets and of the one that it leaves.
package struct WriteAccess: Sendable {
  private let identity: ExpressionValue
  /// What the writer may read.
  package let viewer: Viewer

  /// A writer with these claims, nil for a client without a token, who may read what `viewer` may.
  package init(claims: JSONObject?, viewer: Viewer) {
    identity = claims.map { ExpressionValue(json: .object($0)) } ?? .null
    self.viewer = viewer
  }

  /// Whether a rule lets the writer do something with an object. `before` is the object before the transaction, where
  /// it is changed.
  func permits(
    _ action: AccessRules.Action, _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader,
    before: (record: ObjectRecord, reader: any ObjectReader)? = nil
  ) -> Bool {
    guard let rule = record.entity.rules.actions[action] else { return viewer.isPermittedWithoutRule }
    return rule.holds(for: identity, reference, record, in: reader, before: before)
  }

  /// Whether a rule lets the writer do something with objects of an entity, as far as that depends on who asks alone;
  /// nil where it depends on the object.
  func permits(_ action: AccessRules.Action, of entity: Entity) -> Bool? {
    guard let rule = entity.rules.actions[action] else { return viewer.isPermittedWithoutRule }
    return rule.readsObjects ? nil : rule.holds(for: identity)
  }

  /// Whether the writer may set a key of an entity's objects.
  func maySet(_ key: Int, of entity: Entity) -> Bool {
    entity.rules.keys[key]?.update?.holds(for: identity) ?? true
  }
}

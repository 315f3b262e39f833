import CEL

/// Who writes a transaction, where rules are asked about it (the specification, section 11). They are asked on the
/// writer, of the state that the transaction meets and of the one that it leaves.
package struct WriteAccess: Sendable {
  private let identity: ExpressionValue
  /// What the writer may read.
  package let viewer: Viewer
  /// What the rules come to that do not depend on the object, by the index of the entity.
  private let outcomes: [[AccessRules.Action: Bool]]

  /// A writer with these claims, nil for a client without a token, who may read what `viewer` may.
  package init(claims: JSONObject?, viewer: Viewer, in schema: Schema) {
    let identity = claims.map { ExpressionValue(json: .object($0)) } ?? .null
    self.identity = identity
    self.viewer = viewer
    outcomes = schema.entities.map { entity in
      var outcomes: [AccessRules.Action: Bool] = [:]
      for action in AccessRules.Action.allCases where action != .read {
        guard let rule = entity.rules.actions[action] else {
          outcomes[action] = viewer.isPermittedWithoutRule
          continue
        }
        outcomes[action] = rule.outcome(for: identity)
      }
      return outcomes
    }
  }

  /// Whether a rule lets the writer do something with an object. `before` is the object before the transaction, where
  /// it is changed.
  func permits(
    _ action: AccessRules.Action, _ reference: Reference, _ record: ObjectRecord, in reader: some ObjectReader,
    before: (record: ObjectRecord, reader: any ObjectReader)? = nil
  ) -> Bool {
    if let outcome = permits(action, of: record.entity) { return outcome }
    guard let rule = record.entity.rules.actions[action] else { return viewer.isPermittedWithoutRule }
    return rule.holds(for: identity, reference, record, in: reader, before: before)
  }

  /// Whether a rule lets the writer do something with objects of an entity, as far as that does not depend on the
  /// object; nil where it does.
  func permits(_ action: AccessRules.Action, of entity: Entity) -> Bool? { outcomes[entity.index][action] }

  /// Whether the writer may set a key of an entity's objects.
  func maySet(_ key: Int, of entity: Entity) -> Bool {
    entity.rules.keys[key]?.update?.holds(for: identity) ?? true
  }

  /// Returns whether the writer may change a key through its inverse, or nil if the key has no rule `inverse`.
  func mayChangeThroughInverse(_ key: Int, of entity: Entity) -> Bool? {
    entity.rules.keys[key]?.inverse?.holds(for: identity)
  }
}

/// One operation of a transaction (the specification, section 3).
public enum Operation: Sendable {
  /// Creates an object; `already-exists` if one has this reference.
  case create(Reference, JSONObject)
  /// Creates an object or replaces all that it holds: keys of the body are set, the others are reset to their defaults.
  case put(Reference, JSONObject)
  /// Sets the value for a key path.
  case set(Reference, keyPath: String, Value)
  /// Changes an object by a JSON merge patch (RFC 7396).
  case patch(Reference, JSONObject)
  /// Changes an object by a JSON Patch (RFC 6902): each key that it names is set as a whole.
  case jsonPatch(Reference, JSONPatch)
  /// Inserts members into a collection: each at the index of the result in the same position of the list, or without
  /// indexes at its end.
  case insert(Reference, keyPath: String, [NewMember], at: [Int]?)
  /// Removes members from an ordered collection by index.
  case removeIndexes(Reference, keyPath: String, [Int])
  /// Removes members from a collection; values that are not members are ignored.
  case removeMembers(Reference, keyPath: String, [Value])
  /// Replaces the members at these indexes.
  case replace(Reference, keyPath: String, at: [Int], [NewMember])
  /// Changes an unordered collection as a set.
  case mutateSet(Reference, keyPath: String, SetMutation, [NewMember])
  /// Deletes an object by the delete rules.
  case delete(Reference)
  /// Opens a bracket around changes of a key (KVO guide, "Manual Change Notification").
  case willChange(Reference, key: String)
  /// Closes the bracket that `willChange` opened.
  case didChange(Reference, key: String)
  /// Fails unless the object is unchanged since a revision.
  case require(Reference, Revision)
  /// Sets the lifetime of an object. It belongs to the write before it, whose request gave it, and has no result of its
  /// own.
  case lifetime(Reference, Lifetime)

  /// The object of the operation.
  public var reference: Reference {
    switch self {
    case .create(let reference, _), .put(let reference, _), .set(let reference, _, _), .patch(let reference, _),
      .jsonPatch(let reference, _), .insert(let reference, _, _, _), .removeIndexes(let reference, _, _),
      .removeMembers(let reference, _, _), .replace(let reference, _, _, _), .mutateSet(let reference, _, _, _),
      .delete(let reference), .willChange(let reference, _), .didChange(let reference, _), .require(let reference, _),
      .lifetime(let reference, _):
      reference
    }
  }

  /// The kind, and its operands as `OperationKind.operands` lists them.
  package var form: (kind: OperationKind, operands: [Operand]) {
    switch self {
    case .create(_, let body): (.create, [.body(body)])
    case .put(_, let body): (.put, [.body(body)])
    case .set(_, let keyPath, let value): (.set, [.text(keyPath), .value(value)])
    case .patch(_, let body): (.patch, [.body(body)])
    case .jsonPatch(_, let patch): (.jsonPatch, [.patch(patch)])
    case .insert(_, let keyPath, let members, let indexes):
      (.insert, [.text(keyPath), .members(members), .indexes(indexes)])
    case .removeIndexes(_, let keyPath, let indexes): (.removeIndexes, [.text(keyPath), .indexes(indexes)])
    case .removeMembers(_, let keyPath, let members): (.removeMembers, [.text(keyPath), .values(members)])
    case .replace(_, let keyPath, let indexes, let members):
      (.replace, [.text(keyPath), .indexes(indexes), .members(members)])
    case .mutateSet(_, let keyPath, let mutation, let members):
      (.mutateSet, [.text(keyPath), .mutation(mutation), .members(members)])
    case .delete: (.delete, [])
    case .willChange(_, let key): (.willChange, [.text(key)])
    case .didChange(_, let key): (.didChange, [.text(key)])
    case .require(_, let revision): (.require, [.revision(revision)])
    case .lifetime(_, let lifetime): (.lifetime, [.lifetime(lifetime)])
    }
  }

  /// Creates an operation of a kind on an object; the operands must be those that `OperationKind.operands` lists.
  package init(_ kind: OperationKind, _ object: Reference, _ operands: [Operand]) {
    var rest = operands[...]
    switch (kind, rest.popFirst(), rest.popFirst(), rest.popFirst()) {
    case (.create, .body(let body), nil, nil): self = .create(object, body)
    case (.put, .body(let body), nil, nil): self = .put(object, body)
    case (.set, .text(let path), .value(let value), nil): self = .set(object, keyPath: path, value)
    case (.patch, .body(let body), nil, nil): self = .patch(object, body)
    case (.jsonPatch, .patch(let patch), nil, nil): self = .jsonPatch(object, patch)
    case (.insert, .text(let path), .members(let members), .indexes(let indexes)):
      self = .insert(object, keyPath: path, members, at: indexes)
    case (.removeIndexes, .text(let path), .indexes(let indexes?), nil):
      self = .removeIndexes(object, keyPath: path, indexes)
    case (.removeMembers, .text(let path), .values(let members), nil):
      self = .removeMembers(object, keyPath: path, members)
    case (.replace, .text(let path), .indexes(let indexes?), .members(let members)):
      self = .replace(object, keyPath: path, at: indexes, members)
    case (.mutateSet, .text(let path), .mutation(let mutation), .members(let members)):
      self = .mutateSet(object, keyPath: path, mutation, members)
    case (.delete, nil, nil, nil): self = .delete(object)
    case (.willChange, .text(let key), nil, nil): self = .willChange(object, key: key)
    case (.didChange, .text(let key), nil, nil): self = .didChange(object, key: key)
    case (.require, .revision(let revision), nil, nil): self = .require(object, revision)
    case (.lifetime, .lifetime(let lifetime), nil, nil): self = .lifetime(object, lifetime)
    default: preconditionFailure("these are not the operands of \(kind)")
    }
  }
}

/// A member to add to a collection.
public enum NewMember: Sendable {
  /// A reference, or a value.
  case value(Value)
  /// An object that is created in place.
  case object(Reference, JSONObject)
}

/// The set operations (KVO guide, "Unordered to-many": the methods of `mutableSetValueForKey:`).
public enum SetMutation: String, Hashable, Sendable, CaseIterable {
  /// Adds members.
  case union
  /// Removes members.
  case minus
  /// Removes all other members.
  case intersect
  /// Makes these the only members.
  case set
}

/// The operations by name, with the operands of each: the one table for writing and reading the text of the journal,
/// the feed of commits and the requests of clients.
package enum OperationKind: String, CaseIterable, Sendable {
  case create, put, set, patch, jsonPatch, insert, removeIndexes, removeMembers, replace, mutateSet, delete
  case willChange, didChange, require, lifetime

  /// The operands after the object, in the order of the journal.
  package var operands: [OperandForm] {
    switch self {
    case .create, .put, .patch: [.body]
    case .set: [.keyPath, .value]
    case .jsonPatch: [.patch]
    case .insert: [.keyPath, .members, .optionalIndexes]
    case .removeIndexes: [.keyPath, .indexes]
    case .removeMembers: [.keyPath, .values]
    case .replace: [.keyPath, .indexes, .members]
    case .mutateSet: [.keyPath, .mutation, .members]
    case .delete: []
    case .willChange, .didChange: [.key]
    case .require: [.revision]
    case .lifetime: [.lifetime]
    }
  }

  /// The member `op` of the operation in the feed and in a client's transaction.
  package var name: String {
    switch self {
    case .jsonPatch: "patch"
    case .removeIndexes, .removeMembers: "remove"
    default: rawValue
    }
  }

  /// True if a client's transaction may contain the operation: the others are made from requests of their own.
  package var isSent: Bool { self != .put && self != .jsonPatch && self != .mutateSet && self != .lifetime }
}

/// The type of an operand, with its name as a member of a JSON object.
package enum OperandForm: Sendable {
  case keyPath, key, body, value, values, members, indexes, optionalIndexes, mutation, patch, revision, lifetime

  /// The name of the member.
  package var name: String {
    switch self {
    case .keyPath: "keyPath"
    case .key: "key"
    case .body, .value, .values, .members: "value"
    case .indexes, .optionalIndexes: "index"
    case .mutation: "operation"
    case .patch: "patch"
    case .revision: "revision"
    case .lifetime: "lifetime"
    }
  }
}

/// One operand of an operation.
package enum Operand: Sendable {
  /// A key path or a key.
  case text(String)
  /// The keys of an object.
  case body(JSONObject)
  /// One value.
  case value(Value)
  /// Members to remove.
  case values([Value])
  /// Members to add.
  case members([NewMember])
  /// Indexes of members; nil for the end.
  case indexes([Int]?)
  /// A set operation.
  case mutation(SetMutation)
  /// A JSON Patch.
  case patch(JSONPatch)
  /// A revision.
  case revision(Revision)
  /// The lifetime of an object.
  case lifetime(Lifetime)
}

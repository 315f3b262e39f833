/// One thing that a transaction does (the specification, section 3).
public enum Operation: Sendable {
  /// Makes an object; `already-exists` where there is one of this name.
  case create(Reference, JSONObject)
  /// Makes an object or replaces all that it holds: keys of the body are set, the others go back to their defaults.
  case put(Reference, JSONObject)
  /// Sets the value for a key path.
  case set(Reference, keyPath: String, Value)
  /// Changes an object by a JSON merge patch (RFC 7396).
  case patch(Reference, JSONObject)
  /// Changes an object by a JSON Patch (RFC 6902): each key that it names is set as a whole.
  case jsonPatch(Reference, JSONPatch)
  /// Puts members into a collection: at these places of the result, each for the member of the same position, or where
  /// there are none at its end.
  case insert(Reference, keyPath: String, [NewMember], at: [Int]?)
  /// Takes members out of an ordered collection by their places.
  case removeIndexes(Reference, keyPath: String, [Int])
  /// Takes members out of a collection; what is no member is none already.
  case removeMembers(Reference, keyPath: String, [Value])
  /// Puts members in the place of those at these places.
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
  /// Sets the lifetime of an object. It belongs to the write before it, which says so, and has no result of its own.
  case lifetime(Reference, Lifetime)
}

/// Something that becomes a member of a collection.
public enum NewMember: Sendable {
  /// A reference, or a value.
  case value(Value)
  /// An object that is made in place.
  case object(Reference, JSONObject)
}

/// The set operations (KVO guide, "Unordered to-many": the methods of `mutableSetValueForKey:`).
public enum SetMutation: String, Hashable, Sendable, CaseIterable {
  /// Adds members.
  case union
  /// Takes members out.
  case minus
  /// Takes out all but these.
  case intersect
  /// Has these and no others.
  case set
}

/// What must hold for a transaction to be applied at all (RFC 9110 §13.1).
public enum Precondition: Sendable {
  /// Neither the object nor what its computed keys read has changed since; `unknown-object` where it is not there.
  case unchangedObject(Reference, since: Revision)
  /// The objects along the key path have not changed since; `unknown-object` where the first is not there.
  case unchangedKeyPath(Reference, String, since: Revision)
  /// The object, or what the key path reads, is not as it was at any of these revisions; also where it is not there.
  case differs(Reference, keyPath: String?, from: Set<Revision>)
  /// Something is so of the state that the transaction meets, about this object.
  case holds(Reference, @Sendable (borrowing ModelState) -> Bool)
  /// Nothing that can be: what is written is no object that was there.
  case impossible
  /// The object is there.
  case exists(Reference)
  /// The object is not there.
  case absent(Reference)
}

/// Operations that are applied together or not at all, and make one revision.
public struct Transaction: Sendable {
  /// What is done, in order.
  public var operations: [Operation]
  /// What must hold before.
  public var preconditions: [Precondition]
  /// The name of the writer; observers receive it and know their own echo by it.
  public var writer: String?
  /// The `sub` of the identity that wrote it, or nil if that is nobody or unknown; the journal keeps it.
  package var author: String?
  /// What was found out about the operations before; of none where there are fewer.
  var preparations: [Preparation] = []
  /// The text of the transaction in a journal, where `prepare` has written it; the operations are not changed then.
  var journalText: [UInt8]?
  /// Who writes, where rules are asked.
  package var access: WriteAccess?

  /// A transaction of these operations.
  public init(_ operations: [Operation], preconditions: [Precondition] = [], writer: String? = nil) {
    self.operations = operations
    self.preconditions = preconditions
    self.writer = writer
  }
}

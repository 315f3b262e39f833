import HTTPServer
import KeyValueModel
import Store

/// To-many key paths: inserting, removing, set operations.
extension KeyPathHandlers {
  /// The key path of an object that a request writes.
  struct Place {
    let reference: Reference
    let keyPath: String
    let schema: Schema
    /// Where objects that are made in place get their ids.
    let newIDs: NewIDs

    /// What the members of the to-many are; nil where the key path names none.
    var memberType: ValueType? { schema.memberType(of: keyPath, from: reference) }

    /// The members that a body names, or has made.
    func newMembers(_ body: Value) throws(Problem) -> [NewMember] {
      do throws(ModelError) {
        return try MemberReader(keyPath, of: reference, in: schema, makeID: newIDs.make).newMembers(body)
      } catch {
        throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: keyPath))
      }
    }

    /// What `?index=0,2`, `?object=Employee/3` or, for values, `?value="a"` removes; nil without any of them.
    func removal(_ target: Target) throws(Problem) -> Operation? {
      try target.allowOneOf("index", "object", "value")
      if let indexes = try target.indexes() { return .removeIndexes(reference, keyPath: keyPath, indexes) }
      if let members = try target.references() {
        if case .attribute? = memberType {
          throw Problem(
            .malformedQuery, "object: the members are values, and removed by value=JSON", object: reference,
            keyPath: keyPath)
        }
        return .removeMembers(reference, keyPath: keyPath, members)
      }
      return try target.values().map { .removeMembers(reference, keyPath: keyPath, $0) }
    }
  }

  /// `POST …/{toMany}?index=0,2` or `?operation=union`; without either, members are appended.
  func post(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    try write(request, context) { place throws(Problem) in
      let target = context.target
      try context.checkParameters()
      try target.allowOneOf("index", "operation")
      let indexes = try target.indexes()
      let mutation = try target["operation"].map { text throws(Problem) in try Self.mutation(text) }
      let body = try Body.value(of: request)
      guard let mutation else {
        return .insert(place.reference, keyPath: place.keyPath, try place.newMembers(body), at: indexes)
      }
      // The other two make nothing: an object in their body is no member.
      let mayMake = mutation == .union || mutation == .set
      let members = mayMake ? try place.newMembers(body) : MemberReader.values(body).map(NewMember.value)
      return .mutateSet(place.reference, keyPath: place.keyPath, mutation, members)
    }
  }

  private static func mutation(_ text: String) throws(Problem) -> SetMutation {
    if let mutation = SetMutation(rawValue: text) { return mutation }
    let names = SetMutation.allCases.map(\.rawValue).joined(separator: ", ")
    throw Problem(.malformedQuery, "operation: '\(text)' is none of \(names)")
  }
}

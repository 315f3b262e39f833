import HTTPServer
import KeyValueModel
import ModelStore

/// To-many key paths: inserting, removing, set operations.
extension KeyPathHandlers {
  /// `POST …/{toMany}?index=0,2` or `?operation=union`; without either, members are appended.
  func post(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    let (reference, keyPath) = (try context.reference(in: store.schema), context[.keyPath])
    let target = context.target
    try target.allowOnly("index", "operation")
    try target.allowOneOf("index", "operation")
    let indexes = try target.indexes()
    let mutation = try target["operation"].map { text throws(Problem) in try Self.mutation(text) }
    let body = try Body.value(of: request)
    guard let mutation else {
      let members = try newMembers(body, reference, keyPath)
      return try write(.insert(reference, keyPath: keyPath, members, at: indexes), reference, keyPath, request)
    }
    // The other two make nothing: an object in their body is no member.
    let mayMake = mutation == .union || mutation == .set
    let members = mayMake ? try newMembers(body, reference, keyPath) : MemberReader.values(body).map(NewMember.value)
    return try write(.mutateSet(reference, keyPath: keyPath, mutation, members), reference, keyPath, request)
  }

  /// `DELETE …/{toMany}` with `?index=0,2`, `?object=Employee/3` or, for values, `?value="a"`; nil without any of them.
  func removal(_ reference: Reference, _ keyPath: String, _ target: Target) throws(Problem) -> Operation? {
    try target.allowOneOf("index", "object", "value")
    if let indexes = try target.indexes() { return .removeIndexes(reference, keyPath: keyPath, indexes) }
    if let members = try target.references() {
      if case .attribute? = store.schema.memberType(of: keyPath, from: reference) {
        throw Problem(
          .malformedQuery, "object: the members are values, and removed by value=JSON", object: reference,
          keyPath: keyPath)
      }
      return .removeMembers(reference, keyPath: keyPath, members)
    }
    if let members = try target.values() { return .removeMembers(reference, keyPath: keyPath, members) }
    return nil
  }

  /// The members that a body names, or has made.
  func newMembers(_ body: Value, _ reference: Reference, _ keyPath: String) throws(Problem) -> [NewMember] {
    do throws(ModelError) {
      return try MemberReader(keyPath, of: reference, in: store.schema, makeID: makeID).newMembers(body)
    } catch {
      throw Problem(ModelError(error.code, error.detail, object: reference, keyPath: keyPath))
    }
  }

  private static func mutation(_ text: String) throws(Problem) -> SetMutation {
    if let mutation = SetMutation(rawValue: text) { return mutation }
    let names = SetMutation.allCases.map(\.rawValue).joined(separator: ", ")
    throw Problem(.malformedQuery, "operation: '\(text)' is none of \(names)")
  }
}

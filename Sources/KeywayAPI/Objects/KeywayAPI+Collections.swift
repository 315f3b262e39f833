internal import HTTPServer
internal import KeyValueModel
internal import ModelStore

/// To-many key paths: inserting, removing, replacing, set operations.
extension KeywayAPI {
  /// `POST …/{toMany}?index=0,2` or `?operation=union`; without either, members are appended.
  func postKeyPath(
    _ entity: String, _ id: String, _ keyPath: String, _ request: borrowing Request, _ target: Target
  ) throws(Problem) -> HandlerResponse {
    let reference = try reference(entity, id)
    try target.allowOnly("index", "operation")
    try target.allowOneOf("index", "operation")
    let indexes = try target.indexes()
    let mutation = try target["operation"].map { text throws(Problem) in try Self.mutation(text) }
    let body = try Body.value(of: request)
    guard let mutation else {
      let members = try newMembers(body, reference, keyPath)
      return try writeValue(.insert(reference, keyPath: keyPath, members, at: indexes), reference, keyPath, request)
    }
    // The other two make nothing: an object in their body is no member.
    let mayMake = mutation == .union || mutation == .set
    let members = mayMake ? try newMembers(body, reference, keyPath) : MemberReader.values(body).map(NewMember.value)
    let operation = Operation.mutateSet(reference, keyPath: keyPath, mutation, members)
    return try writeValue(operation, reference, keyPath, request)
  }

  /// `PUT …/{toMany}?index=1`: one member, or an array of as many as there are places.
  func replaceMembers(
    of reference: Reference, _ keyPath: String, at indexes: [Int], _ request: borrowing Request
  ) throws(Problem) -> HandlerResponse {
    let members = try newMembers(try Body.value(of: request), reference, keyPath)
    return try writeValue(.replace(reference, keyPath: keyPath, at: indexes, members), reference, keyPath, request)
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

  /// Does one operation on a key path and answers with its value as written.
  func writeValue(
    _ operation: Operation, _ reference: Reference, _ keyPath: String, _ request: borrowing Request
  ) throws(Problem) -> HandlerResponse {
    try write([operation], about: .keyPath(reference, keyPath), request) { api, _, state in
      api.value(keyPath, of: reference, in: state)
    }
  }

  private func newMembers(_ body: Value, _ reference: Reference, _ keyPath: String) throws(Problem) -> [NewMember] {
    try Problem.translating { () throws(ModelError) in
      do throws(ModelError) {
        return try MemberReader(keyPath, of: reference, in: store.schema, makeID: makeID).newMembers(body)
      } catch {
        throw ModelError(error.code, error.detail, object: reference, keyPath: keyPath)
      }
    }
  }

  private static func mutation(_ text: String) throws(Problem) -> SetMutation {
    if let mutation = SetMutation(rawValue: text) { return mutation }
    let names = SetMutation.allCases.map(\.rawValue).joined(separator: ", ")
    throw Problem(.malformedQuery, "operation: '\(text)' is none of \(names)")
  }
}

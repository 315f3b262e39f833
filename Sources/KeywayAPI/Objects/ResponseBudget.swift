import KeyValueModel

/// How many objects one response may still be made of, where a request can multiply them: by `expand`, and by key paths
/// that lead through one to-many after another (`employees.department.employees…`).
struct ResponseBudget {
  private let limit: Int
  private var left: Int

  init(_ limits: RequestLimits) {
    limit = limits.answerObjects
    left = limit
  }

  /// Takes objects from what is left, or throws `too-many-objects`.
  mutating func spend(_ count: Int) throws(Problem) {
    guard count <= left else {
      throw Problem(.tooManyObjects, "the answer would be made of more than \(limit) objects")
    }
    left -= count
  }

  /// Takes what a key path reads of its second and each further to-many. No object is looked at twice for that: the
  /// ways that lead to each are counted.
  mutating func spend(
    on path: ModelKeyPath, of reference: Reference, in state: borrowing ModelState
  ) throws(Problem) {
    var ways: [Reference: Int] = [reference: 1]
    var crossed = 0
    for key in path.keys + (path.operation?.memberKeys ?? []) {
      var next: [Reference: Int] = [:]
      var members = 0
      var isCollection = false
      for (object, count) in ways {
        guard let record = state.record(object) else { continue }
        let value = state.value(of: record, object, key: key)
        let elements = value.elements
        isCollection = isCollection || elements != nil
        members += count * (elements?.count ?? 1)
        for case .reference(let target) in elements ?? [value] { next[target, default: 0] += count }
      }
      if isCollection { crossed += 1 }
      if isCollection, crossed > 1 { try spend(members) }
      ways = next
    }
  }
}

package import KeyValueModel

extension LiveQuery {
  /// The query in a state, which may cost so much.
  package init(_ query: Query, in state: ModelState, costLimit: Int) throws(ModelError) {
    var cost = costLimit
    try self.init(query, in: state, cost: &cost)
  }

  /// The query in a state. `cost` is what it may cost, and is spent from; throws `malformed-filter` where that does not
  /// suffice, or where `isAbandoned` says that the query is no longer wanted.
  package init(
    _ query: Query, in state: ModelState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: query.candidates(in: state) ?? state.unorderedReferences(of: query.entity), in: state,
      state.schema,
      cost: &cost,
      isAbandoned)
  }

  /// The query in a state of the past, likewise.
  package init(
    _ query: Query, in state: PastState, cost: inout Int, _ isAbandoned: () -> Bool = { false }
  ) throws(ModelError) {
    try self.init(
      query, candidates: state.references(of: query.entity), in: state, state.schema, cost: &cost, isAbandoned)
  }
}

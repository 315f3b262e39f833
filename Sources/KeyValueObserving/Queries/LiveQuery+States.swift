package import KeyValueModel

extension LiveQuery {
  /// The query in a state. Throws `malformed-filter` where filtering costs more than `costLimit` in all.
  package init(_ query: Query, in state: ModelState, costLimit: Int) throws(ModelError) {
    var cost = costLimit
    let candidates = query.filter.flatMap { state.candidates(of: query.entity, for: $0) }
    try self.init(
      query, candidates: candidates ?? state.references(of: query.entity), in: state, state.schema, cost: &cost)
  }

  /// The query in a state of the past. Throws `malformed-filter` where filtering costs more than `costLimit` in all.
  package init(_ query: Query, in state: PastState, costLimit: Int) throws(ModelError) {
    var cost = costLimit
    try self.init(
      query, candidates: state.references(of: query.entity), in: state, state.schema, cost: &cost)
  }
}

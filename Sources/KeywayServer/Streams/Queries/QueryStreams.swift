package import HTTPServer
package import Store

/// Opens streams of live queries.
package struct QueryStreams: Sendable {
  private let registry: StreamRegistry

  /// Streams of a registry.
  package init(_ registry: StreamRegistry) { self.registry = registry }

  /// Opens a stream. Throws `too-many-queries`, `too-many-streams`, and `malformed-filter` for a filter that costs too
  /// much, before anything is registered. Takes as long as it takes to evaluate the query.
  package func open(
    _ request: QueryStreamRequest, in store: Store, _ isAbandoned: () -> Bool = { false }
  ) throws(Problem) -> EventStream {
    try registry.open(QueryStreamOpening(request, in: store, registry.services, isAbandoned), in: store, isAbandoned)
  }
}

import KeyValueModel
import KeyValueObserving
import Store

/// What the cells of a stream have been sent: the objects as they were, and the rows of live queries.
struct DeliveredState {
  /// The objects.
  let reader: any ObjectReader
  /// The last revision that was sent.
  let revision: Revision
  /// The rows of a query, nil where they are not known any more.
  let result: (Query) -> QueryResult?

  /// The present, which a stream has that is sent everything; with the values of it that are known.
  init(present publication: borrowing Publication, _ values: ObservedValues? = nil) {
    let queries = publication.queries
    let state = publication.snapshot.state
    self.init(
      reader: values?.reader(of: state) ?? state, revision: publication.snapshot.revision,
      result: { queries.result(of: $0) })
  }

  /// The state right after a revision, with what observations saw that want to be told old values; nil if the history
  /// does not reach back so far, or if that takes more steps than writers can wait for.
  init?(
    after revision: Revision, observedBy observations: some Sequence<Observation>, _ publication: borrowing Publication
  ) {
    guard let past = publication.past(after: revision) else { return nil }
    var values = ObservedValues(steps: ObservedValues.stepsUnderLock)
    do throws(ModelError) {
      try values.evaluate(observations.filter { $0.options.contains(.old) }, in: past, at: revision)
    } catch {
      return nil
    }
    let queries = publication.queries
    self.init(
      reader: values.reader(of: past), revision: revision, result: { queries.result(of: $0, before: revision + 1) })
  }

  /// A state of the past.
  init(reader: any ObjectReader, revision: Revision, result: @escaping (Query) -> QueryResult?) {
    self.reader = reader
    self.revision = revision
    self.result = result
  }
}

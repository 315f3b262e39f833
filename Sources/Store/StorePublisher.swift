package import KeyValueModel
package import KeyValueObserving

/// Passes the events of commits on to the streams.
package protocol StorePublisher: Sendable {
  /// Called on the writer, for each batch of durable commits. `notify` has their events worked out, and gives each to
  /// what it is called with, in the order of revisions, while the next are not made yet: a publisher that passes them
  /// on at once has the first observers told while the last are still to be found. It is to be called once. No observer
  /// can come or go meanwhile, so this must be quick, and must not call the store. `queryEvents` are what the batch did
  /// to live queries, in the order of revisions too.
  ///
  /// Gives the revision up to which every subscriber has received everything, or is known to lag.
  func publish(
    _ queryEvents: [QueryEvent], upTo revision: Revision,
    notifying notify: (_ receive: (ObserverEvent) -> Void) -> Void
  ) -> Revision
}

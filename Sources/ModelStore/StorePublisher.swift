package import KeyValueModel
package import KeyValueObserving

/// Passes the events of commits on to the streams.
package protocol StorePublisher: Sendable {
  /// Called on the writer, for each batch of durable commits, with all their events in the order of revisions. No
  /// observer can come or go meanwhile, so it must be quick, and must not call the store. `queryEvents` are what the
  /// batch did to live queries, in the order of revisions too.
  ///
  /// Gives the revision up to which every subscriber has received everything, or is known to lag.
  func publish(_ events: [ObserverEvent], _ queryEvents: [QueryEvent], upTo revision: Revision) -> Revision
}

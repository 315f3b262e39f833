package import KeyValueModel
package import KeyValueObserving

/// Whoever passes on what commits tell the observers.
package protocol StorePublisher: Sendable {
  /// Called on the writer, for each batch of durable commits, with all their events in the order of revisions. No
  /// observer can come or go meanwhile, so it must be quick, and must not call the store. `queryEvents` are what the
  /// batch did to live queries, in the order of revisions too.
  ///
  /// Gives the revision up to which everybody has heard of everything, or has said that he did not.
  func publish(_ events: [ObserverEvent], _ queryEvents: [QueryEvent], upTo revision: Revision) -> Revision
}

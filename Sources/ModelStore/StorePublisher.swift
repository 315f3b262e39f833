package import KeyValueModel
package import KeyValueObserving

/// Whoever passes on what commits tell the observers.
package protocol StorePublisher: Sendable {
  /// Called on the writer, for each batch of durable commits, with all their events in the order of revisions. No
  /// observer can come or go meanwhile, so it must be quick, and must not call the store.
  func publish(_ events: [ObserverEvent], upTo revision: Revision)
}

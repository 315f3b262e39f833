import HTTPServer
import KeyValueObserving

extension QueryPayer {
  /// A client pays for the live queries that its streams watch.
  init(_ client: ClientAddress) { self.init(client.high, client.low) }
}

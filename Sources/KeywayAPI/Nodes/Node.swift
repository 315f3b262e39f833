import HTTPServer
import KeyValueModel
import ModelStore

/// What clients and other nodes may know of this one, and what it does about clients that have seen a newer state (the
/// specification, section 13).
package final class Node: Sendable {
  /// What can be set.
  package struct Options: Sendable {
    /// Where other nodes reach this one, or `auto`: its host and port. `nodes.url`.
    package var url = "auto"
    /// The bounds of waiting for a state.
    package var waits = RevisionWaits.Limits()

    /// The defaults.
    package init() {}
  }

  /// Where other nodes reach this one.
  let url: String
  /// Requests that wait for a state.
  let waits: RevisionWaits

  /// The node at an address and port. `now` gives nanoseconds that only grow.
  init(_ options: Options, host: String, port: UInt16, now: @escaping @Sendable () -> UInt64) {
    url = options.url == "auto" ? Self.url(host: host, port: port) : options.url
    waits = RevisionWaits(options.waits, now: now)
  }

  private static func url(host: String, port: UInt16) -> String {
    if host.hasPrefix("unix:") { return host }
    return "http://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  /// What `/v1/status` says of it. It is the only one, so it is never behind.
  var status: JSONObject {
    ["role": .string("single"), "node": .string(url), "behind": .integer(0), "behindSeconds": .integer(0)]
  }

  /// Has a request wait that names a state to which the store has not come; nil where it need not. Throws `behind`
  /// where it has waited long enough, or may not wait.
  func postponement(of request: borrowing Request, _ store: Store) throws(Problem) -> HandlerResponse? {
    guard let text = request.header(.keywayCursor), let cursor = Cursor(text), cursor.epoch == store.epoch,
      cursor.revision > store.revision
    else { return nil }
    let client = request.client
    guard !request.isPostponed, waits.hasRoom(for: client) else {
      throw Problem(.behind, "the store is at revision \(store.revision) and has not come to \(cursor)")
    }
    return .postponed { [waits] postponement in
      waits.add(postponement, of: client, until: cursor.revision) { store.revision }
    }
  }
}

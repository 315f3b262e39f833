import HTTPServer
import KeyValueModel
import Store

/// A write on its way to another node.
struct OutgoingWrite: Sendable {
  /// What is sent, without its name.
  let request: NodeRequest
  /// Its name.
  let write: PassedWrite
  /// Called once, right before it is sent for the first time; false where it need not be, and its client has an
  /// answer.
  let begin: @Sendable () -> Bool
  /// Called once after `begin`, with what the other node answers. A fault that is unsent says that it has certainly not
  /// done it.
  let finish: @Sendable (Result<NodeAnswer, NodeFault>) -> Void

  /// The same with the word that it was sent before.
  var again: OutgoingWrite {
    var write = write
    write.isAgain = true
    return OutgoingWrite(request: request, write: write, begin: begin, finish: finish)
  }

  /// Whether a write can go with others: the answer to a batch waits for each of its writes, so that one does not that
  /// is large, or that the other node may have to wait for. What changes no objects does not either, and what lasts
  /// with a stream, which may be another node's.
  static func goesWithOthers(
    _ forwarded: NodeRequest, of request: borrowing Request, _ route: Route, _ store: Store
  ) -> Bool {
    guard route.isCommitted(by: request.method),
      WriteBatch.byteCount(of: forwarded) <= WriteBatch.mostRequestBytes,
      LifetimeReader.streams(namedBy: request, isTransaction: route.isTransaction).isEmpty
    else { return false }
    let cursor = request.header(.keywayCursor).flatMap { Cursor($0) }
    let named = max(cursor?.revision ?? 0, Node.newestNamed(by: request, store.epoch) ?? 0)
    return named <= store.revision
  }
}

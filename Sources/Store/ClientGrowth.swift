package import KeyValueModel
import Synchronization

/// A client's deletions and smaller values are subtracted from its own growth, which is never below 0. A client without
/// growth has no entry, so that the table is small beside the objects that it counts. Only the writer uses it: the
/// growth noted for a batch is kept once the journal holds the batch, and undone otherwise.
struct ClientGrowth {
  /// The limit for one client in bytes; 0 means no limit, and nothing is counted.
  private let limit: Int
  private let refusals: GrowthRefusals
  private var growths: [Int: Int] = [:]
  /// The previous growths of the clients of the current batch, in the order in which they changed.
  private var former: [(client: Int, bytes: Int)] = []

  init(limit: Int, refusals: GrowthRefusals) {
    (self.limit, self.refusals) = (limit, refusals)
  }

  /// Applies a client's transaction within `limits` and the client's share. Counts the refusal if the transaction would
  /// add too much.
  mutating func commit(
    _ transaction: Transaction, of client: Int, limits: TransactionLimits, to model: inout Model,
    at milliseconds: Int64
  ) throws(ModelError) -> Commit {
    let memoryBytes = model.state.memoryBytes
    let limits = bounding(limits, for: client, at: memoryBytes)
    do throws(ModelError) {
      let commit = try model.commit(transaction, limits: limits, at: milliseconds)
      note(model.state.memoryBytes - memoryBytes, of: client)
      return commit
    } catch {
      if error.code == .overloaded { refusals.note(limits.memoryBound) }
      throw error
    }
  }

  /// The bytes by which a client's writes have made the objects grow.
  func bytes(of client: Int) -> Int { growths[client] ?? 0 }

  /// Returns the limits for a client's transaction on objects that currently take `memoryBytes`: lowered to the
  /// client's share if that leaves less than the limit for all objects. The store's own writes have no share.
  func bounding(_ limits: TransactionLimits, for client: Int, at memoryBytes: Int) -> TransactionLimits {
    guard limit > 0, client != Store.ownClient else { return limits }
    let bound = memoryBytes + max(0, limit - bytes(of: client))
    guard bound < limits.memoryBytes else { return limits }
    var limits = limits
    (limits.memoryBytes, limits.memoryBound) = (bound, .client)
    return limits
  }

  /// Records the number of bytes by which a client's transaction has made the objects grow; negative if they shrank.
  mutating func note(_ growth: Int, of client: Int) {
    guard limit > 0, growth != 0, client != Store.ownClient else { return }
    former.append((client, bytes(of: client)))
    set(max(0, bytes(of: client) + growth), of: client)
  }

  /// Commits the growth noted for the batch.
  mutating func commitBatch() { former.removeAll(keepingCapacity: true) }

  /// Restores the growths from before the batch, which was not committed.
  mutating func undo() {
    for (client, bytes) in former.reversed() { set(bytes, of: client) }
    commitBatch()
  }

  private mutating func set(_ bytes: Int, of client: Int) { growths[client] = bytes > 0 ? bytes : nil }
}

/// Counts the writes that were refused because the objects would have taken more memory than the limits allow.
package final class GrowthRefusals: Sendable {
  private let byObjects = Atomic(0)
  private let byClient = Atomic(0)
  private let objectsAreFull: @Sendable () -> Void

  /// Creates a count of 0. `objectsAreFull` is called on the writer for each refusal by the limit for all objects.
  init(_ objectsAreFull: @escaping @Sendable () -> Void = {}) {
    self.objectsAreFull = objectsAreFull
  }

  /// Returns the number of refusals by a bound since the start.
  package func count(by bound: TransactionLimits.MemoryBound) -> Int {
    switch bound {
    case .objects: byObjects.load(ordering: .relaxed)
    case .client: byClient.load(ordering: .relaxed)
    }
  }

  fileprivate func note(_ bound: TransactionLimits.MemoryBound) {
    switch bound {
    case .objects:
      byObjects.wrappingAdd(1, ordering: .relaxed)
      objectsAreFull()
    case .client: byClient.wrappingAdd(1, ordering: .relaxed)
    }
  }
}

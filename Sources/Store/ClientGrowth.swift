package import KeyValueModel
import Synchronization

/// The bytes by which each client's writes have made the objects grow since the start, and the bound on them.
///
/// A client's deletions and smaller values are subtracted from its own growth, which is never below 0. A client without
/// growth has no entry, so that the table is small beside the objects that it counts. A value of the writer: what a
/// batch has noted is kept once the journal has it, and undone otherwise.
struct ClientGrowth {
  /// The most bytes of one client; 0 for no bound, and nothing is counted.
  private let limit: Int
  private let refusals: GrowthRefusals
  private var growths: [Int: Int] = [:]
  /// The former growths of the clients of the batch under way, in the order in which they changed.
  private var former: [(client: Int, bytes: Int)] = []

  init(limit: Int, refusals: GrowthRefusals) {
    (self.limit, self.refusals) = (limit, refusals)
  }

  /// Applies a client's transaction within limits and the client's share; counts one that is refused because it would
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

  /// The limits of a client's transaction on objects that take so many bytes now: lower by its share where that leaves
  /// less than the limit of all. The store's own writes have no share.
  func bounding(_ limits: TransactionLimits, for client: Int, at memoryBytes: Int) -> TransactionLimits {
    guard limit > 0, client != Store.ownClient else { return limits }
    let bound = memoryBytes + max(0, limit - bytes(of: client))
    guard bound < limits.memoryBytes else { return limits }
    var limits = limits
    (limits.memoryBytes, limits.memoryBound) = (bound, .client)
    return limits
  }

  /// Notes that a client's transaction has made the objects take so many bytes more, or less.
  mutating func note(_ growth: Int, of client: Int) {
    guard limit > 0, growth != 0, client != Store.ownClient else { return }
    former.append((client, bytes(of: client)))
    set(max(0, bytes(of: client) + growth), of: client)
  }

  /// The batch is committed.
  mutating func keep() { former.removeAll(keepingCapacity: true) }

  /// The batch has come to nothing.
  mutating func undo() {
    for (client, bytes) in former.reversed() { set(bytes, of: client) }
    keep()
  }

  private mutating func set(_ bytes: Int, of client: Int) { growths[client] = bytes > 0 ? bytes : nil }
}

/// Counts the writes that were refused because they would have had the objects take more memory than they may.
package final class GrowthRefusals: Sendable {
  private let byObjects = Atomic(0)
  private let byClient = Atomic(0)
  private let objectsAreFull: @Sendable () -> Void

  /// A count from 0; `objectsAreFull` is called on the writer for each refusal by the limit of all objects.
  init(_ objectsAreFull: @escaping @Sendable () -> Void = {}) {
    self.objectsAreFull = objectsAreFull
  }

  /// The number of refusals by a bound since the start.
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

import KeyValueModel
import Support

/// Whether the transactions of a batch may give leases to objects that have none: not more objects than the store has
/// room for, and not more of one client than its share. To give another lease to an object that has one is always
/// allowed, or a store that is full would end what is in use.
///
/// A value of the writer: what it admits is not in the table yet when it is asked for the next.
struct LeaseAdmission {
  private let limit: ShareLimit
  private let count: Int
  /// How many a client has in the table.
  private let countOfClient: (Int) -> Int
  private var admitted = 0
  private var admittedOfClients: [Int: Int] = [:]
  /// The client of each object that got a lease and had none.
  private(set) var clients: [Reference: Int] = [:]

  /// For a batch that begins with so many leases, of which a client has what `countOfClient` gives.
  init(limit: Int, limitPerClient: Int, count: Int, countOfClient: @escaping (Int) -> Int) {
    self.limit = ShareLimit(total: limit, perClient: limitPerClient)
    self.count = count
    self.countOfClient = countOfClient
  }

  /// The objects that a transaction gives leases to and that have none in this state. Throws `too-many-leases` or
  /// `too-many-leases-of-client`. O(n) in its operations, and next to nothing for one without leases.
  func check(
    _ transaction: Transaction, of client: Int, in state: borrowing ModelState
  ) throws(ModelError) -> Set<Reference> {
    var objects: Set<Reference> = []
    for operation in transaction.operations {
      guard case .lifetime(let object, let lifetime) = operation, lifetime != .unlimited,
        state.record(object)?.lease == nil
      else { continue }
      objects.insert(object)
    }
    guard !objects.isEmpty else { return objects }
    let own = countOfClient(client) + admittedOfClients[client, default: 0]
    let total = count + admitted
    switch limit.refusal(of: objects.count, held: own, total: total) {
    case nil: return objects
    case .total:
      throw ModelError(
        .tooManyLeases,
        "of the \(limit.total) leases of leases.maximum, \(total) are in use, \(own) by this client; its share of the "
          + "rest does not suffice for \(objects.count) more")
    case .perClient:
      throw ModelError(
        .tooManyLeasesOfClient,
        "this client holds \(own) leases, and leases.perClient allows \(limit.perClient)")
    }
  }

  /// The transaction was applied that `check` has given these objects of.
  mutating func add(_ objects: Set<Reference>, of client: Int) {
    guard !objects.isEmpty else { return }
    admitted += objects.count
    admittedOfClients[client, default: 0] += objects.count
    for object in objects { clients[object] = client }
  }
}

import KeyValueModel

/// Whether the transactions of a batch may give leases to objects that have none: not more objects than the store has
/// room for, and not more of one client than its share. To give another lease to an object that has one is always
/// allowed, or a store that is full would end what is in use.
///
/// A value of the writer: what it admits is not in the table yet when it is asked for the next.
struct LeaseAdmission {
  private let limit: Int
  private let limitPerClient: Int
  private let count: Int
  /// How many a client has in the table.
  private let countOfClient: (Int) -> Int
  private var admitted = 0
  private var admittedOfClients: [Int: Int] = [:]
  /// The client of each object that got a lease and had none.
  private(set) var clients: [Reference: Int] = [:]

  /// For a batch that begins with so many leases, of which a client has what `countOfClient` gives.
  init(limit: Int, limitPerClient: Int, count: Int, countOfClient: @escaping (Int) -> Int) {
    (self.limit, self.limitPerClient, self.count) = (limit, limitPerClient, count)
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
    guard count + admitted + objects.count <= limit else {
      throw ModelError(.tooManyLeases, "there are \(count + admitted) objects that end by themselves (leases.maximum)")
    }
    let own = countOfClient(client) + admittedOfClients[client, default: 0]
    guard own + objects.count <= limitPerClient else {
      throw ModelError(
        .tooManyLeasesOfClient,
        "\(own) objects end by themselves that this client has made so (leases.perClient)")
    }
    return objects
  }

  /// The transaction was applied that `check` has given these objects of.
  mutating func add(_ objects: Set<Reference>, of client: Int) {
    guard !objects.isEmpty else { return }
    admitted += objects.count
    admittedOfClients[client, default: 0] += objects.count
    for object in objects { clients[object] = client }
  }
}

/// Limits on a resource that clients share: a total, a limit for each client, and a reserve for clients that hold
/// little. It only decides, and counts nothing.
///
/// With `others` for what all other clients hold, a client may hold the larger of
///
/// - the fraction of what the others leave of the unreserved part that `perClient` is of this part, so that a client
///   which is alone may hold `perClient`, and less the more the others hold (dynamic thresholds: Choudhury and Hahne,
///   "Dynamic queue length thresholds for shared-memory packet switches", IEEE/ACM Transactions on Networking 6(2),
///   1998);
/// - one eighth of what the others leave of the total, at least one unit. Only clients that hold little get into the
///   reserve this way, each of them into a part of it, however much the large ones want;
///
/// and never more than `perClient`. What a client holds is never taken away because its share has shrunk.
///
/// Inlinable, because every write passes through one on its way into a `FairQueue`.
@usableFromInline package struct ShareLimit: Hashable, Sendable {
  /// The limit that a request would exceed.
  @frozen @usableFromInline package enum Refusal: Error, Hashable, Sendable {
    /// The client's own limit: it gets no more, whatever the others hold.
    case perClient
    /// The total, or the part of it that the other clients leave to this one: there may be more later.
    case total
  }

  /// The most that all clients together may hold.
  @usableFromInline package let total: Int
  /// The most that one client may hold.
  @usableFromInline package let perClient: Int
  /// The part of the total that clients with much may fill.
  @usableFromInline let unreserved: Int

  /// A client may always hold one part in this many of what the others leave.
  @inlinable static var freePart: Int { 8 }

  /// Limits with a reserve, by default one eighth of the total, or what `perClient` leaves of it where that is less: a
  /// client that may have everything leaves no reserve.
  @inlinable package init(total: Int, perClient: Int, reserve: Int? = nil) {
    self.total = total
    self.perClient = perClient
    unreserved = total - min(total, reserve ?? min(total / Self.freePart, max(0, total - perClient)))
  }

  /// Returns the limit that a client which holds `held` would exceed with `amount` more, while all clients together
  /// hold `total`; nil if it may have them.
  @inlinable package func refusal(of amount: Int, held: Int, total: Int) -> Refusal? {
    if amount <= 0 { return nil }
    if amount > perClient - held { return .perClient }
    if amount > self.total - total { return .total }
    let others = total - held
    let wanted = held + amount
    if wanted == 1 || wanted <= (self.total - others) / Self.freePart { return nil }
    return wanted <= share(beside: others) ? nil : .total
  }

  /// Returns the most that a client may hold by its own limit while the others hold so much, without the reserve.
  @inlinable func share(beside others: Int) -> Int {
    guard others < unreserved else { return 0 }
    // Rounded up, so that small limits can be used up.
    let product = min(perClient, unreserved).multipliedFullWidth(by: unreserved - others)
    let (quotient, remainder) = unreserved.dividingFullWidth(product)
    return quotient + (remainder > 0 ? 1 : 0)
  }
}

/// The amounts that clients hold of a resource, within a `ShareLimit`. A value without lock or clock.
package struct FairShares<Client: Hashable & Sendable>: Sendable {
  /// The limits.
  package let limit: ShareLimit
  /// The amount that all clients together hold.
  package private(set) var total = 0
  private var held: [Client: Int] = [:]

  /// Creates shares of which no client holds anything.
  package init(_ limit: ShareLimit) { self.limit = limit }

  /// Returns the amount that a client holds.
  package func held(by client: Client) -> Int { held[client] ?? 0 }

  /// The number of clients that hold something.
  package var clientCount: Int { held.count }

  /// Returns the limit that a client would exceed with so much more; nil if it may have it.
  package func refusal(of amount: Int, for client: Client) -> ShareLimit.Refusal? {
    limit.refusal(of: amount, held: held[client] ?? 0, total: total)
  }

  /// Adds an amount to what a client holds. Returns the limit that this would exceed, and changes nothing then; nil if
  /// the client has it.
  package mutating func take(_ amount: Int, for client: Client) -> ShareLimit.Refusal? {
    let present = held[client] ?? 0
    if let refusal = limit.refusal(of: amount, held: present, total: total) { return refusal }
    total += amount
    held[client] = present + amount
    return nil
  }

  /// Releases what a client has taken, or a part of it.
  package mutating func release(_ amount: Int, of client: Client) {
    guard let present = held[client] else { return }
    let returned = min(amount, present)
    total -= returned
    held[client] = present == returned ? nil : present - returned
  }
}

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

  /// Takes back what a client has taken, or a part of it.
  package mutating func giveBack(_ amount: Int, of client: Client) {
    guard let present = held[client] else { return }
    let returned = min(amount, present)
    total -= returned
    held[client] = present == returned ? nil : present - returned
  }
}

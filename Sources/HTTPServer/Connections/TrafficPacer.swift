import DequeModule
import Locking
import Synchronization

/// Has the connection threads serve addresses alike: where several make requests, what is sent on the connections of
/// one that has had its share stays with the kernel, and so with the client, until it has a share again. An address
/// that is alone is never held up: there is nobody to wait for it, and it may be a proxy with everybody behind it.
///
/// libmicrohttpd serves all that is ready in turn, one connection like the other, so without this a client with a
/// thousand connections would have a thousand times the processors of a client with one.
///
/// And has a crowd of new connections begin in slices: libmicrohttpd serves thousands of first requests, once they are
/// readable, before it looks whether one came on another connection.
final class TrafficPacer: Sendable {
  /// What a request counts beside its bytes.
  static let requestBytes = 2_048
  /// What a connection counts that is begun.
  static let connectionBytes = 16_384
  /// What a connection that goes on is expected to move before the next looks.
  private static let turnBytes = 32_768
  /// How long after a request of another address two are said to be there.
  private static let companyMilliseconds: Int64 = 1_000

  private let waiting = Locked<[ClientAddress: Deque<Connection>]>([:])
  private let lastAddress = Atomic<Int>(0)
  private let companyUntil = Atomic<Int64>(0)
  /// The first requests that may be read.
  private let beginnings: TickQuota
  /// Whether connections wait that have not begun.
  private let hasCrowd = Atomic<Bool>(false)

  /// One that has so many connections begin in a second.
  init(beginningsPerSecond: Int) {
    beginnings = TickQuota(perSecond: beginningsPerSecond)
  }

  /// Whether connections wait to be read.
  var isEmpty: Bool { waiting.withLock { $0.isEmpty } }

  /// Whether a connection may be read now. Otherwise it is among those that `goOn` gives once its address has a share
  /// again; `wake` is called where it is the first to wait.
  func mayRead(_ connection: Connection, now: Int64, whenFirst wake: () -> Void) -> Bool {
    let slot = connection.slot
    let address = slot.addressNumber
    let last = lastAddress.load(ordering: .relaxed)
    if last != address {
      lastAddress.store(address, ordering: .relaxed)
      // The first address of all has no company yet.
      if last != 0 { companyUntil.store(now + Self.companyMilliseconds, ordering: .relaxed) }
    }
    let hadItsShare = slot.traffic.rest(now: now) <= 0 && hasCompany(now: now)
    if !hadItsShare, mayGoOn(connection, now: now) { return true }
    if connection.waitsForTurn.exchange(true, ordering: .relaxed) { return false }
    if !hadItsShare { hasCrowd.store(true, ordering: .relaxed) }
    let isFirst = waiting.withLock { waiting in
      defer { waiting[slot.address, default: []].append(connection) }
      return waiting.isEmpty
    }
    if isFirst { wake() }
    return false
  }

  /// Whether a connection has begun, or may now, or has nothing to begin with.
  private func mayGoOn(_ connection: Connection, now: Int64) -> Bool {
    if connection.hasBegun.load(ordering: .relaxed) { return true }
    // Those that wait come first.
    if !hasCrowd.load(ordering: .relaxed), beginnings.left(now: now) > 0 { return true }
    return !connection.hasUnread
  }

  /// The first bytes of a connection were read.
  func begun(now: Int64) { beginnings.take(now: now) }

  /// Whether a connection of a place may be begun now: not where its address has had its share, and has company.
  func mayBegin(_ slot: ConnectionSlot, now: Int64) -> Bool {
    slot.traffic.rest(now: now) > 0 || !hasCompany(now: now)
  }

  private func hasCompany(now: Int64) -> Bool { companyUntil.load(ordering: .relaxed) > now }

  /// The connections that may be read again, those of an address that have waited longest first. The addresses take
  /// turns, and of connections that have not begun no more may than begin in a tick.
  func goOn(now: Int64) -> [Connection] {
    waiting.withLock { waiting in
      var connections: [Connection] = []
      var turns: [ClientAddress: Int] = [:]
      for (address, line) in waiting {
        guard let slot = line.first?.slot else { continue }
        let rest = slot.traffic.rest(now: now)
        // One that is alone is not held up by its share.
        turns[address] = hasCompany(now: now) ? rest > 0 ? 1 + rest / Self.turnBytes : nil : line.count
      }
      while !turns.isEmpty {
        for (address, left) in turns {
          guard left > 0, let connection = waiting[address]?.first,
            beginnings.left(now: now) > 0 || connection.hasBegun.load(ordering: .relaxed)
          else {
            turns[address] = nil
            continue
          }
          waiting[address]?.removeFirst()
          connection.waitsForTurn.store(false, ordering: .relaxed)
          guard connection.isOpen.load(ordering: .relaxed) else { continue }
          if !connection.hasBegun.exchange(true, ordering: .relaxed) { begun(now: now) }
          connections.append(connection)
          turns[address] = left - 1
        }
      }
      for (address, line) in waiting where line.isEmpty { waiting[address] = nil }
      hasCrowd.store(
        waiting.contains { $0.value.contains { !$0.hasBegun.load(ordering: .relaxed) } }, ordering: .relaxed)
      return connections
    }
  }
}

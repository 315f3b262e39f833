import DequeModule
import Locking
import Synchronization

/// Has the connection threads serve addresses alike: where several make requests, what is sent on the connections of
/// one that has had its share stays with the kernel, and so with the client, until it has a share again. An address
/// that is alone is never held up: there is nobody to wait for it, and it may be a proxy with everybody behind it.
///
/// libmicrohttpd serves all that is ready in turn, one connection like the other, so without this a client with a
/// thousand connections would have a thousand times the processors of a client with one.
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
    guard slot.traffic.rest(now: now) <= 0, companyUntil.load(ordering: .relaxed) > now else { return true }
    if connection.waitsForTurn.exchange(true, ordering: .relaxed) { return false }
    let isFirst = waiting.withLock { waiting in
      defer { waiting[slot.address, default: []].append(connection) }
      return waiting.isEmpty
    }
    if isFirst { wake() }
    return false
  }

  /// Whether a connection of a place may be begun now: not where its address has had its share, and has company.
  func mayBegin(_ slot: ConnectionSlot, now: Int64) -> Bool {
    slot.traffic.rest(now: now) > 0 || companyUntil.load(ordering: .relaxed) <= now
  }

  /// The connections that may be read again, those that have waited longest first.
  func goOn(now: Int64) -> [Connection] {
    waiting.withLock { waiting in
      var connections: [Connection] = []
      for address in Array(waiting.keys) {
        guard let rest = waiting[address]?.first?.slot.traffic.rest(now: now), rest > 0 else { continue }
        var turns = 1 + rest / Self.turnBytes
        while turns > 0, let connection = waiting[address]?.popFirst() {
          connection.waitsForTurn.store(false, ordering: .relaxed)
          guard connection.isOpen.load(ordering: .relaxed) else { continue }
          connections.append(connection)
          turns -= 1
        }
        if waiting[address]?.isEmpty ?? true { waiting[address] = nil }
      }
      return connections
    }
  }
}

import DequeModule
import Support
import Synchronization

/// Makes the connection threads serve addresses equally: while several addresses make requests, the data of an address
/// that has used its share stays with the kernel, and so with the client, until the address has a share again. A single
/// active address is never delayed: no one waits for it, and it may be a proxy for all clients.
///
/// libmicrohttpd serves everything that is ready in order, one connection like the other, so that without this a client
/// with a thousand connections would get a thousand times the processor time of a client with one. A share counts
/// bytes, and the processor time of the connection threads, since the cost of a request or a connection depends on more
/// than its bytes.
///
/// The pacer also lets a crowd of new connections begin in slices: libmicrohttpd serves thousands of first requests,
/// once they are readable, before it checks other connections for requests.
final class TrafficPacer: Sendable {
  /// The number of bytes that a request counts in addition to its own.
  static let requestBytes = 2_048
  /// The number of bytes that a new connection counts.
  static let connectionBytes = 16_384
  /// The number of bytes and the time in nanoseconds that a released connection is expected to take before the next
  /// check.
  private static let turnBytes = 32_768
  private static let turnNanoseconds = 50_000
  /// The time for which several addresses are considered active after a request of a different address.
  private static let otherClientsMilliseconds: Int64 = 1_000

  private struct Waiting {
    let connection: Connection
    /// True if the connection waits to begin, and not for a share.
    let isBeginning: Bool
  }

  private struct State {
    var lines: [ClientAddress: Deque<Waiting>] = [:]
    /// The number of waiting connections that wait to begin, and not for a share.
    var beginningCount = 0
  }

  private let state = Locked(State())
  private let lastAddress = Atomic<Int>(0)
  private let otherClientsUntil = Atomic<Int64>(0)
  /// The divisor of the number of new connections that may begin while earlier ones make requests.
  private static let besideKeptPart = 4
  /// The time for which earlier connections are considered active after a request on one of them.
  private static let keptMilliseconds: Int64 = 100
  /// The quota of first requests that may be read.
  private let beginnings: TickQuota
  /// The quota of first requests while earlier connections make requests.
  private let beginningsBesideKept: TickQuota
  private let keptUntil = Atomic<Int64>(0)
  /// True while connections wait that have not begun.
  private let hasCrowd = Atomic<Bool>(false)

  /// Creates a pacer that lets so many connections begin in a second.
  init(beginningsPerSecond: Int) {
    beginnings = TickQuota(perSecond: beginningsPerSecond)
    beginningsBesideKept = TickQuota(perSecond: beginningsPerSecond / Self.besideKeptPart)
  }

  /// True if no connection waits to be read.
  var isEmpty: Bool { state.withLock { $0.lines.isEmpty } }

  /// Returns true if a connection may be read now. Otherwise `goOn` returns it once its address has a share again;
  /// `wake` is called if it is the first one to wait. `nanoseconds` returns the same moment exactly.
  func mayRead(
    _ connection: Connection, now: Int64, nanoseconds: () -> Int64, whenFirst wake: () -> Void
  ) -> Bool {
    let slot = connection.slot
    let address = slot.clientNumber
    let last = lastAddress.load(ordering: .relaxed)
    if last != address {
      lastAddress.store(address, ordering: .relaxed)
      // The very first address does not make several.
      if last != 0 { otherClientsUntil.store(now + Self.otherClientsMilliseconds, ordering: .relaxed) }
    }
    let hadItsShare = hasOtherClients(now: now) && !Self.hasShare(slot, now: now, nanoseconds: nanoseconds())
    if !hadItsShare, mayGoOn(connection, now: now) { return true }
    if connection.waitsForTurn.exchange(true, ordering: .relaxed) { return false }
    let isBeginning = !hadItsShare && !connection.hasBegun.load(ordering: .relaxed)
    let isFirst = state.withLock { state in
      defer { state.lines[slot.client, default: []].append(Waiting(connection: connection, isBeginning: isBeginning)) }
      if isBeginning {
        state.beginningCount += 1
        hasCrowd.store(true, ordering: .relaxed)
      }
      return state.lines.isEmpty
    }
    if isFirst { wake() }
    return false
  }

  /// Returns true if a connection has begun, or may begin now, or has nothing to begin with.
  private func mayGoOn(_ connection: Connection, now: Int64) -> Bool {
    if connection.hasBegun.load(ordering: .relaxed) { return true }
    // Waiting connections come first.
    if !hasCrowd.load(ordering: .relaxed), mayOneBegin(now: now) { return true }
    return !connection.hasUnread
  }

  private func mayOneBegin(now: Int64) -> Bool {
    guard beginnings.left(now: now) > 0 else { return false }
    return keptUntil.load(ordering: .relaxed) <= now || beginningsBesideKept.left(now: now) > 0
  }

  /// Counts a connection whose first bytes were read.
  func begun(now: Int64) {
    beginnings.take(now: now)
    beginningsBesideKept.take(now: now)
  }

  /// Notes that a further request was read on a connection that had begun before.
  func wentOn(now: Int64) {
    // Written only now and then, since all threads read it.
    guard keptUntil.load(ordering: .relaxed) < now + Self.keptMilliseconds / 2 else { return }
    keptUntil.store(now + Self.keptMilliseconds, ordering: .relaxed)
  }

  /// Returns true if a connection of a slot may be begun now: unless its address has used its share while several
  /// addresses are active.
  func mayBegin(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Bool {
    !hasOtherClients(now: now) || Self.hasShare(slot, now: now, nanoseconds: nanoseconds)
  }

  /// Returns true if requests of several addresses arrived recently. Evaluates `now` only if that has ever been the
  /// case.
  func hasOtherClients(now: @autoclosure () -> Int64) -> Bool {
    let end = otherClientsUntil.load(ordering: .relaxed)
    return end > 0 && end > now()
  }

  private static func hasShare(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Bool {
    slot.traffic.rest(now: now) > 0 && slot.time.rest(now: nanoseconds) > 0
  }

  /// Returns the number of connections of an address that may be read, based on the rest of its share; nil if none may.
  private static func turns(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Int? {
    let (bytes, time) = (slot.traffic.rest(now: now), slot.time.rest(now: nanoseconds))
    return bytes > 0 && time > 0 ? 1 + min(bytes / turnBytes, time / turnNanoseconds) : nil
  }

  /// Returns the connections that may be read again, for each address those that have waited longest first. Addresses
  /// are served round-robin, and no more new connections are returned than may begin in a tick.
  func goOn(now: Int64, nanoseconds: Int64) -> [Connection] {
    state.withLock { state in
      var connections: [Connection] = []
      var turns: [ClientAddress: Int] = [:]
      for (address, line) in state.lines {
        guard let slot = line.first?.connection.slot else { continue }
        // A single active address is not limited by its share.
        turns[address] = hasOtherClients(now: now) ? Self.turns(slot, now: now, nanoseconds: nanoseconds) : line.count
      }
      while !turns.isEmpty {
        for (address, left) in turns {
          guard left > 0, let first = state.lines[address]?.first,
            mayOneBegin(now: now) || first.connection.hasBegun.load(ordering: .relaxed)
          else {
            turns[address] = nil
            continue
          }
          state.lines[address]?.removeFirst()
          if first.isBeginning { state.beginningCount -= 1 }
          let connection = first.connection
          connection.waitsForTurn.store(false, ordering: .relaxed)
          guard connection.isOpen.load(ordering: .relaxed) else { continue }
          if !connection.hasBegun.exchange(true, ordering: .relaxed) { begun(now: now) }
          connections.append(connection)
          turns[address] = left - 1
        }
      }
      for (address, line) in state.lines where line.isEmpty { state.lines[address] = nil }
      hasCrowd.store(state.beginningCount > 0, ordering: .relaxed)
      return connections
    }
  }
}

/// The use of the connection threads by one address in the current tick: the bytes transferred, or the time taken. Use
/// beyond the allowance counts in the next ticks.
///
/// Concurrent reads may exceed the allowance by one each.
final class TrafficShare: Sendable {
  /// The length of a tick for bytes, in milliseconds.
  fileprivate static let tickMilliseconds: Int64 = 10
  /// The length of a tick for time, in milliseconds: the time for which one address may keep the threads busy before
  /// another one is served.
  static let timeTickMilliseconds: Int64 = 2

  private let allowance: Int
  private let tickLength: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Creates a share of so many bytes a second; moments are in milliseconds.
  init(bytesPerSecond: Int) {
    allowance = max(1, bytesPerSecond / Int(1_000 / Self.tickMilliseconds))
    tickLength = Self.tickMilliseconds
  }

  /// Creates a share of so many nanoseconds of the threads a second; moments are in nanoseconds.
  init(nanosecondsPerSecond: Int) {
    allowance = max(1, nanosecondsPerSecond / Int(1_000 / Self.timeTickMilliseconds))
    tickLength = Self.timeTickMilliseconds * 1_000_000
  }

  /// Counts use.
  func count(_ amount: Int) { used.wrappingAdd(amount, ordering: .relaxed) }

  /// Returns the rest of the allowance now; 0 or less if it is used up.
  func rest(now: Int64) -> Int {
    let present = now / tickLength
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      let before = used.load(ordering: .relaxed)
      let (forgiven, isLong) = allowance.multipliedReportingOverflow(by: Int(clamping: present - last))
      used.wrappingSubtract(isLong ? before : min(before, forgiven), ordering: .relaxed)
    }
    return allowance - used.load(ordering: .relaxed)
  }
}

/// The number of times that something may happen in a tick. Threads that ask at the same moment may exceed it by one
/// each.
final class TickQuota: Sendable {
  private let limit: Int
  private let tickMilliseconds: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Creates a quota of so many times a second. The ticks are as short as those of a share of time, so that the threads
  /// are available to other work as soon; if less than one would fall into such a tick, they are hundredths of a
  /// second, with at least one in each.
  init(perSecond count: Int) {
    let isOften = count >= Int(1_000 / TrafficShare.timeTickMilliseconds)
    tickMilliseconds = isOften ? TrafficShare.timeTickMilliseconds : TrafficShare.tickMilliseconds
    limit = max(1, count / Int(1_000 / tickMilliseconds))
  }

  /// Returns the remaining number in the tick of a moment, in milliseconds.
  func left(now milliseconds: Int64) -> Int {
    let present = milliseconds / tickMilliseconds
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      used.store(0, ordering: .relaxed)
    }
    return max(0, limit - used.load(ordering: .relaxed))
  }

  /// Counts one occurrence at a moment, in milliseconds.
  func take(now milliseconds: Int64) {
    if left(now: milliseconds) > 0 { used.wrappingAdd(1, ordering: .relaxed) }
  }
}

/// The address that a connection thread currently works for, and the processor time that this takes.
///
/// The current connection determines the address; the thread's work until it begins with another connection counts for
/// the previous one, since libmicrohttpd does not report when it ends with one.
///
/// `@unchecked Sendable`: touched by that thread alone.
final class ThreadAttention: @unchecked Sendable {
  private var share: TrafficShare?
  private var since: Int64 = 0

  /// True if the time of the thread counts for an address.
  var isCounting: Bool { share != nil }

  /// Begins work for a connection of the address with the given share, or for one whose time does not count. `clock`
  /// returns the thread's processor time in nanoseconds.
  func turn(to next: TrafficShare?, clock: () -> Int64) {
    guard share != nil || next != nil else { return }
    let now = clock()
    share?.count(Int(now - since))
    (share, since) = (next, now)
  }
}

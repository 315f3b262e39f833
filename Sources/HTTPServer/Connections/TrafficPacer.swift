import DequeModule
import Support
import Synchronization

/// Has the connection threads serve addresses alike: where several make requests, what is sent on the connections of
/// one that has had its share stays with the kernel, and so with the client, until it has a share again. An address
/// that is alone is never held up: there is nobody to wait for it, and it may be a proxy with everybody behind it.
///
/// libmicrohttpd serves all that is ready in turn, one connection like the other, so without this a client with a
/// thousand connections would have a thousand times the processors of a client with one. A share is of bytes, and of
/// the processor time of the connection threads: what a request or a connection costs differs by more than its bytes.
///
/// And has a crowd of new connections begin in slices: libmicrohttpd serves thousands of first requests, once they are
/// readable, before it looks whether one came on another connection.
final class TrafficPacer: Sendable {
  /// What a request counts beside its bytes.
  static let requestBytes = 2_048
  /// What a connection counts that is begun.
  static let connectionBytes = 16_384
  /// What a connection that goes on is expected to move, and to take, before the next looks.
  private static let turnBytes = 32_768
  private static let turnNanoseconds = 50_000
  /// How long after a request of another address two are said to be there.
  private static let companyMilliseconds: Int64 = 1_000

  private struct Waiting {
    let connection: Connection
    /// Whether it waits to begin, and not for a share.
    let isBeginning: Bool
  }

  private struct State {
    var lines: [ClientAddress: Deque<Waiting>] = [:]
    /// How many of them wait to begin, and not for a share.
    var beginningCount = 0
  }

  private let state = Locked(State())
  private let lastAddress = Atomic<Int>(0)
  private let companyUntil = Atomic<Int64>(0)
  /// While others go on, one part in so many of the connections begin that might.
  private static let besideKeptPart = 4
  /// How long after a request on a connection that began before there is said to be one.
  private static let keptMilliseconds: Int64 = 100
  /// The first requests that may be read.
  private let beginnings: TickQuota
  /// Those that may while there are requests on connections that have begun before.
  private let beginningsBesideKept: TickQuota
  private let keptUntil = Atomic<Int64>(0)
  /// Whether connections wait that have not begun.
  private let hasCrowd = Atomic<Bool>(false)

  /// One that has so many connections begin in a second.
  init(beginningsPerSecond: Int) {
    beginnings = TickQuota(perSecond: beginningsPerSecond)
    beginningsBesideKept = TickQuota(perSecond: beginningsPerSecond / Self.besideKeptPart)
  }

  /// Whether connections wait to be read.
  var isEmpty: Bool { state.withLock { $0.lines.isEmpty } }

  /// Whether a connection may be read now. Otherwise it is among those that `goOn` gives once its address has a share
  /// again; `wake` is called where it is the first to wait. `nanoseconds` gives the same moment exactly.
  func mayRead(
    _ connection: Connection, now: Int64, nanoseconds: () -> Int64, whenFirst wake: () -> Void
  ) -> Bool {
    let slot = connection.slot
    let address = slot.clientNumber
    let last = lastAddress.load(ordering: .relaxed)
    if last != address {
      lastAddress.store(address, ordering: .relaxed)
      // The first address of all has no company yet.
      if last != 0 { companyUntil.store(now + Self.companyMilliseconds, ordering: .relaxed) }
    }
    let hadItsShare = hasCompany(now: now) && !Self.hasShare(slot, now: now, nanoseconds: nanoseconds())
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

  /// Whether a connection has begun, or may now, or has nothing to begin with.
  private func mayGoOn(_ connection: Connection, now: Int64) -> Bool {
    if connection.hasBegun.load(ordering: .relaxed) { return true }
    // Those that wait come first.
    if !hasCrowd.load(ordering: .relaxed), mayOneBegin(now: now) { return true }
    return !connection.hasUnread
  }

  private func mayOneBegin(now: Int64) -> Bool {
    guard beginnings.left(now: now) > 0 else { return false }
    return keptUntil.load(ordering: .relaxed) <= now || beginningsBesideKept.left(now: now) > 0
  }

  /// The first bytes of a connection were read.
  func begun(now: Int64) {
    beginnings.take(now: now)
    beginningsBesideKept.take(now: now)
  }

  /// A further request was read of a connection that has begun before.
  func wentOn(now: Int64) {
    // Written once in a while: both threads read it.
    guard keptUntil.load(ordering: .relaxed) < now + Self.keptMilliseconds / 2 else { return }
    keptUntil.store(now + Self.keptMilliseconds, ordering: .relaxed)
  }

  /// Whether a connection of a place may be begun now: not where its address has had its share, and has company.
  func mayBegin(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Bool {
    !hasCompany(now: now) || Self.hasShare(slot, now: now, nanoseconds: nanoseconds)
  }

  /// Whether requests of several addresses came lately. What time it is, is asked where they ever did.
  func hasCompany(now: @autoclosure () -> Int64) -> Bool {
    let end = companyUntil.load(ordering: .relaxed)
    return end > 0 && end > now()
  }

  private static func hasShare(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Bool {
    slot.traffic.rest(now: now) > 0 && slot.time.rest(now: nanoseconds) > 0
  }

  /// How many connections of an address may go on, by what it has left; nil for none.
  private static func turns(_ slot: ConnectionSlot, now: Int64, nanoseconds: Int64) -> Int? {
    let (bytes, time) = (slot.traffic.rest(now: now), slot.time.rest(now: nanoseconds))
    return bytes > 0 && time > 0 ? 1 + min(bytes / turnBytes, time / turnNanoseconds) : nil
  }

  /// The connections that may be read again, those of an address that have waited longest first. The addresses take
  /// turns, and of connections that have not begun no more may than begin in a tick.
  func goOn(now: Int64, nanoseconds: Int64) -> [Connection] {
    state.withLock { state in
      var connections: [Connection] = []
      var turns: [ClientAddress: Int] = [:]
      for (address, line) in state.lines {
        guard let slot = line.first?.connection.slot else { continue }
        // One that is alone is not held up by its share.
        turns[address] = hasCompany(now: now) ? Self.turns(slot, now: now, nanoseconds: nanoseconds) : line.count
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

/// How much one address has the connection threads do in the tick under way: the bytes that they move, or the time that
/// they take. What is over its allowance counts in the next ones.
///
/// Reads of the same moment may pass the allowance by one each.
final class TrafficShare: Sendable {
  /// How long a tick of bytes is.
  fileprivate static let tickMilliseconds: Int64 = 10
  /// How long a tick of time is: as long as another address may find the threads taken by what one has used at once.
  static let timeTickMilliseconds: Int64 = 2

  private let allowance: Int
  private let tickLength: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many bytes a second; moments are in milliseconds.
  init(bytesPerSecond: Int) {
    allowance = max(1, bytesPerSecond / Int(1_000 / Self.tickMilliseconds))
    tickLength = Self.tickMilliseconds
  }

  /// Of so many nanoseconds of the threads a second; moments are in nanoseconds.
  init(nanosecondsPerSecond: Int) {
    allowance = max(1, nanosecondsPerSecond / Int(1_000 / Self.timeTickMilliseconds))
    tickLength = Self.timeTickMilliseconds * 1_000_000
  }

  /// Counts what was done.
  func count(_ amount: Int) { used.wrappingAdd(amount, ordering: .relaxed) }

  /// What may still be done now; 0 or less where nothing may.
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

/// How often something may happen in the part of a second under way. Threads that ask at the same moment may pass it by
/// one each.
final class TickQuota: Sendable {
  private let limit: Int
  private let tickMilliseconds: Int64
  private let used = Atomic<Int>(0)
  private let tick = Atomic<Int64>(0)

  /// Of so many times a second. The ticks are as short as those of a share of time, so that whatever else is to be done
  /// finds the threads free as soon; where not one would fall into such a tick, they are hundredths of a second, with
  /// at least one in each.
  init(perSecond count: Int) {
    let isOften = count >= Int(1_000 / TrafficShare.timeTickMilliseconds)
    tickMilliseconds = isOften ? TrafficShare.timeTickMilliseconds : TrafficShare.tickMilliseconds
    limit = max(1, count / Int(1_000 / tickMilliseconds))
  }

  /// How often it may still happen in the tick of a moment, in milliseconds.
  func left(now milliseconds: Int64) -> Int {
    let present = milliseconds / tickMilliseconds
    let last = tick.load(ordering: .relaxed)
    if present > last, tick.compareExchange(expected: last, desired: present, ordering: .relaxed).exchanged {
      used.store(0, ordering: .relaxed)
    }
    return max(0, limit - used.load(ordering: .relaxed))
  }

  /// It happened at a moment.
  func take(now milliseconds: Int64) {
    if left(now: milliseconds) > 0 { used.wrappingAdd(1, ordering: .relaxed) }
  }
}

/// Whose connections one connection thread works for, and how much of its processor time that takes.
///
/// The thread is told apart by what it serves; what it does until it turns to another connection is for the one before:
/// libmicrohttpd calls nothing where it ends with one.
///
/// `@unchecked Sendable`: touched by that thread alone.
final class ThreadAttention: @unchecked Sendable {
  private var share: TrafficShare?
  private var since: Int64 = 0

  /// The thread turns to a connection of an address, whose share is given, or to one whose time does not count. `clock`
  /// gives the thread's processor time in nanoseconds.
  func turn(to next: TrafficShare?, clock: () -> Int64) {
    guard share != nil || next != nil else { return }
    let now = clock()
    share?.count(Int(now - since))
    (share, since) = (next, now)
  }
}

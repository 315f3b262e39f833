import HTTPServer

/// Counts the failed sign-ins of the last minute, for each address and for each name from an address. Others' failures
/// with a name lock no one out. A value without lock or clock.
///
/// An attempt counts as a failure from its beginning, so that attempts at the same time are limited too, and is taken
/// back when it succeeds.
struct SignInFailures: Sendable {
  /// The maximum number of failures in a minute with one name from one address.
  static let limitPerName = 10
  /// The maximum number of failures in a minute from one address.
  static let limitPerAddress = 30
  /// The time for which a failure counts, in milliseconds.
  private static let period: Int64 = 60_000
  /// The maximum number of addresses that are counted. Beyond it, those whose last failure is the oldest are forgotten.
  private static let addressLimit = 50_000

  /// An attempt that counts as a failure.
  struct Attempt: Sendable {
    fileprivate let client: ClientAddress
    fileprivate let name: AccountName?
    fileprivate let time: Int64
  }

  /// The failures of an address, oldest first.
  private var failures: [ClientAddress: [(time: Int64, name: AccountName?)]] = [:]

  /// Creates a count of no failures.
  init() {}

  /// Counts an attempt with a name from an address at a time, in milliseconds of a monotonic clock; nil stands for all
  /// texts that are not names. Throws the number of seconds after which another attempt is permitted, if there were too
  /// many failures.
  mutating func begin(_ name: AccountName?, from client: ClientAddress, at now: Int64) throws(Refusal) -> Attempt {
    let recent = (failures[client] ?? []).filter { $0.time > now - Self.period }
    let named = recent.filter { $0.name == name }
    let blocking =
      recent.count >= Self.limitPerAddress
      ? recent[recent.count - Self.limitPerAddress].time
      : named.count >= Self.limitPerName ? named[named.count - Self.limitPerName].time : nil
    failures[client] = recent
    if let blocking { throw Refusal(seconds: Int((blocking + Self.period - now + 999) / 1_000)) }
    if failures.count > Self.addressLimit { forget(at: now) }
    failures[client, default: []].append((now, name))
    return Attempt(client: client, name: name, time: now)
  }

  /// The refusal of an attempt.
  struct Refusal: Error, Hashable {
    /// The number of seconds after which another attempt is permitted.
    let seconds: Int
  }

  /// Takes an attempt back, which has succeeded or was not made.
  mutating func takeBack(_ attempt: Attempt) {
    guard var recent = failures[attempt.client],
      let index = recent.firstIndex(where: { $0.time == attempt.time && $0.name == attempt.name })
    else { return }
    recent.remove(at: index)
    failures[attempt.client] = recent.isEmpty ? nil : recent
  }

  /// Forgets the failures that no longer count at a time.
  mutating func sweep(at now: Int64) {
    for (client, all) in failures where all.last.map({ $0.time <= now - Self.period }) ?? true {
      failures[client] = nil
    }
  }

  /// The number of addresses with failures.
  var addressCount: Int { failures.count }

  private mutating func forget(at now: Int64) {
    sweep(at: now)
    guard failures.count > Self.addressLimit else { return }
    let oldest = failures.sorted { ($0.value.last?.time ?? 0) < ($1.value.last?.time ?? 0) }
    for (client, _) in oldest.prefix(Self.addressLimit / 8) { failures[client] = nil }
  }
}

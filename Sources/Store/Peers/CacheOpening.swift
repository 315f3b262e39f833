import Foundation

/// How a node begins with a journal that it shares with others, and with what it has kept of it in a directory.
///
/// The cache is used where the journal has the same history: the same epoch and schema, and at the cache's last
/// revision the same digest. Then only what comes after is read from where the journal is kept. Otherwise the cache is
/// dropped, and another one begun; where there is no journal at all, it is set aside. Where the journal does not
/// answer, the node begins with the cache alone.
package struct CacheOpening: Sendable {
  /// What an operator should know.
  package enum Remark: Hashable, Sendable {
    /// Something about the files of the cache.
    case found(String)
    /// The cache is dropped, for this reason.
    case dropped(String)
    /// The cache was moved to this directory: there is no journal any more, and it may be the last copy.
    case setAside(String)
    /// The node begins with the cache, up to this revision: the journal does not answer, for this reason.
    case alone(UInt64, String)
    /// The cache lacks the end, for this reason.
    case unkept(String)
  }

  private let directory: String
  private let limits: StoreLimits
  private let open: @Sendable (JournalPosition?) throws(JournalError) -> any SharedJournal
  private let report: @Sendable (Remark) -> Void

  /// How often a copy is made where other nodes take away meanwhile what it begins with.
  private static let attempts = 5

  /// A cache in a directory, which holds the history that `limits` say. `open` opens the journal, without asking where
  /// it gets what is known of it.
  package init(
    directory: String, limits: StoreLimits, report: @escaping @Sendable (Remark) -> Void,
    open: @escaping @Sendable (JournalPosition?) throws(JournalError) -> any SharedJournal
  ) {
    (self.directory, self.limits, self.report, self.open) = (directory, limits, report, open)
  }

  /// The journal with its cache. Throws `inUse` where another process has the cache, and what keeps the journal from
  /// being opened where there is none.
  package func run() throws(JournalError) -> any SharedJournal {
    if let journal = try kept() { return journal }
    return caching(try open(nil))
  }

  /// A journal that is open, with a new cache in the place of what there is, which is made when the store has begun.
  package func caching(_ origin: any SharedJournal) -> any SharedJournal {
    CachedJournal(origin, JournalCache(making: copy))
  }

  // MARK: What is there

  /// The journal with the cache that there is; nil where that is of no use.
  private func kept() throws(JournalError) -> (any SharedJournal)? {
    guard SQLiteJournal.exists(inDirectory: directory),
      !JournalInstallation.isInterrupted(inDirectory: directory)
    else { return nil }
    let cache: SQLiteJournal
    let position: JournalPosition
    do throws(JournalError) {
      cache = try SQLiteJournal(directory: directory, durability: JournalCache.durability) {
        JournalIdentity(epoch: "", schema: "")
      }
      position = try cache.position()
    } catch {
      if case .inUse = error { throw error }
      report(.dropped("\(error)"))
      return nil
    }
    for remark in cache.remarks { report(.found(remark)) }
    guard position.bounds.last > 0 else {
      cache.close()
      return nil
    }
    return try join(cache, position)
  }

  private func join(_ cache: SQLiteJournal, _ position: JournalPosition) throws(JournalError) -> (any SharedJournal)? {
    let origin = try open(position)
    let kept = JournalCache(cache)
    do throws(JournalError) {
      try origin.refresh()
      try kept.catchUp(with: origin)
    } catch {
      let isOther = isOther(error)
      guard isOther || ((try? origin.isMissing()) ?? false) else {
        let last = cache.bounds.last
        report(last > position.bounds.last ? .unkept("\(error)") : .alone(last, "\(error)"))
        return CachedJournal(origin, kept)
      }
      origin.close()
      cache.close()
      if isOther { report(.dropped("\(error)")) } else { report(.setAside(try setAside())) }
      return nil
    }
    return CachedJournal(origin, kept)
  }

  /// Whether an error says that the journal has another history than the cache, or has forgotten what comes next.
  private func isOther(_ error: JournalError) -> Bool {
    switch error {
    case .damaged, .compacted, .unexpectedRevision, .invalid: true
    case .refused, .untrusted, .inUse, .unusable: false
    }
  }

  /// Moves the cache, which is closed, out of the way of the next, with the word of what it is a copy; gives where it
  /// is then. What was moved there before is gone.
  private func setAside() throws(JournalError) -> String {
    let place = "\(directory).aside"
    let mark = try FollowerMark.read(inDirectory: directory)
    do {
      if FileManager.default.fileExists(atPath: place) { try FileManager.default.removeItem(atPath: place) }
      try FileManager.default.moveItem(atPath: directory, toPath: place)
    } catch {
      throw .unusable("\(directory) cannot be moved to \(place): \(error)")
    }
    if let mark { try FollowerMark.write(mark, inDirectory: directory) }
    return place
  }

  // MARK: A new one

  /// Makes the cache, again where other nodes take away meanwhile what it begins with.
  @Sendable private func copy(_ origin: any SharedJournal) throws -> SQLiteJournal {
    var attempts = Self.attempts
    while true {
      do {
        return try copyOnce(origin)
      } catch JournalError.compacted where attempts > 1 {
        attempts -= 1
      }
    }
  }

  /// Makes it of the state that the history begins with, and the records since.
  private func copyOnce(_ origin: any SharedJournal) throws -> SQLiteJournal {
    let base = try Recovery.base(of: origin, through: origin.bounds.last, limits)
    guard base != nil || origin.bounds.base == 0 else {
      throw JournalError.damaged(place: "the journal", reason: "there is no snapshot to begin with")
    }
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let path = "\(directory)/joining.snapshot"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let milliseconds = Int64(Date().timeIntervalSince1970 * 1_000)
    if let base { try write(base, of: origin, to: path, milliseconds) }
    try JournalInstallation.join(
      origin.identity, base == nil ? nil : SnapshotFile(path: path), to: directory, milliseconds: milliseconds)
    let cache = try SQLiteJournal(directory: directory, durability: JournalCache.durability) { origin.identity }
    do throws(JournalError) {
      try JournalCache(cache).catchUp(with: origin)
    } catch {
      cache.discard()
      throw error
    }
    return cache
  }

  private func write(
    _ base: JournalSnapshot, of origin: any SharedJournal, to path: String, _ milliseconds: Int64
  ) throws(JournalError) {
    let identity = origin.identity
    let header = SnapshotFile.Header(
      epoch: identity.epoch, revision: base.revision, digest: base.digest, milliseconds: milliseconds,
      schema: identity.schema)
    try SnapshotFile.write(header, to: path) { receive throws(JournalError) in
      do {
        try origin.readSnapshot(base) { try receive($0) }
      } catch let error as JournalError {
        throw error
      } catch {
        throw .invalid("\(error)")
      }
    }
  }
}

import Foundation

/// Opens a journal that this node shares with others, together with the node's cache of it in a directory.
///
/// The cache is used if the journal has the same history: the same epoch and schema, and the same digest at the cache's
/// last revision. Then only the records after it are read from the shared storage. Otherwise the cache is dropped and a
/// new one is made; if there is no journal at all, the cache is set aside. If the journal does not respond, the node
/// starts with the cache alone.
package struct CacheOpening: Sendable {
  /// A remark for the operator.
  package enum Remark: Hashable, Sendable {
    /// A remark about the files of the cache.
    case found(String)
    /// The cache was dropped, for this reason.
    case dropped(String)
    /// The cache was moved to this directory: the journal no longer exists, and the cache may be the last copy.
    case setAside(String)
    /// The node starts with the cache, up to this revision, because the journal does not respond, for this reason.
    case alone(UInt64, String)
    /// The cache lacks the newest records, for this reason.
    case unkept(String)
  }

  private let directory: String
  private let limits: StoreLimits
  private let open: @Sendable (JournalPosition?) throws(JournalError) -> any SharedJournal
  private let report: @Sendable (Remark) -> Void

  /// The maximum number of attempts to make a copy if other nodes remove the data it begins with.
  private static let attempts = 5

  /// Creates the opening of a cache in a directory, for the history that `limits` specify. `open` opens the journal;
  /// given the position of the cache, it does so without contacting the shared storage.
  package init(
    directory: String, limits: StoreLimits, report: @escaping @Sendable (Remark) -> Void,
    open: @escaping @Sendable (JournalPosition?) throws(JournalError) -> any SharedJournal
  ) {
    (self.directory, self.limits, self.report, self.open) = (directory, limits, report, open)
  }

  /// Returns the journal with its cache. Throws `inUse` if another process uses the cache, and, if there is no usable
  /// cache, the error that prevents the journal from being opened.
  package func run() throws(JournalError) -> any SharedJournal {
    if let journal = try kept() { return journal }
    return caching(try open(nil))
  }

  /// Returns an open journal with a new cache that replaces the existing one, and that is made once the store has
  /// started.
  package func caching(_ origin: any SharedJournal) -> any SharedJournal {
    CachedJournal(origin, JournalCache(making: copy))
  }

  // MARK: The existing cache

  /// Returns the journal with the existing cache; nil if the cache cannot be used.
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

  /// Returns true if an error means that the journal has a different history than the cache, or no longer has the
  /// records that follow.
  private func isOther(_ error: JournalError) -> Bool {
    switch error {
    case .damaged, .compacted, .unexpectedRevision, .invalid: true
    case .refused, .untrusted, .inUse, .unusable: false
    }
  }

  /// Moves the cache, which is closed, out of the way of the next one, but keeps the mark of the node that it is a copy
  /// of. Returns its new path. A cache that was moved there before is removed.
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

  // MARK: A new cache

  /// Makes the cache, with further attempts if other nodes remove the data it begins with.
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

  /// Makes the cache from the state that the history begins with, and the records since.
  private func copyOnce(_ origin: any SharedJournal) throws -> SQLiteJournal {
    let base = try Recovery.base(of: origin, through: origin.bounds.last, limits)
    guard base != nil || origin.bounds.base == 0 else {
      throw JournalError.damaged(place: "the journal", reason: "a snapshot to begin with is missing")
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

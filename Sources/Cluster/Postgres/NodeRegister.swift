import Support

/// The table in which the nodes that share a journal find one another.
struct NodeRegister: Sendable {
  /// Where this node is reached; empty for a program that is none.
  private let url: String
  /// How long a call waits for the database.
  private let patience: Duration
  /// When this node said last that it is there.
  private let told = Told()

  private final class Told: Sendable {
    let time = Locked<ContinuousClock.Instant?>(nil)
    /// The nodes that follow this one.
    let followers = Locked<[String]>([])
  }

  /// How often a node says that it is there.
  private static let pause = Duration.seconds(3)
  /// The most nodes that are read, and that this node says are there.
  private static let most: Int64 = 1_000

  init(url: String, patience: Duration) {
    (self.url, self.patience) = (url, patience)
  }

  /// Those that were heard in the last quarter of a minute.
  func urls(_ connection: PostgresConnection) throws(PostgresError) -> [String] {
    let result = try connection.execute(
      """
      SELECT url FROM keyway.nodes WHERE heard > now() - interval '15 seconds' ORDER BY heard DESC LIMIT $1
      """, [.integer(Self.most)], within: patience)
    return (0..<result.count).map { result.text($0, 0) }
  }

  /// From now on this node says of others, too, that they are there.
  func vouch(for urls: [String]) {
    told.followers.withLock { $0 = Array(Set(urls).subtracting([url]).sorted().prefix(Int(Self.most))) }
  }

  /// Says every few seconds that this node is there, and those that follow it, and has the database forget those that
  /// are long gone. Does nothing where the database refuses that.
  func note(_ connection: PostgresConnection) throws(PostgresError) {
    let isDue = told.time.withLock { told in
      guard !url.isEmpty, told.map({ $0 + Self.pause <= .now }) ?? true else { return false }
      told = .now
      return true
    }
    guard isDue else { return }
    do throws(PostgresError) {
      try tell(connection)
    } catch .refused(let code, let reason) {
      guard PostgresError.refused(code: code, reason).isMissingTable else { return }
      // An earlier version made the database.
      do throws(PostgresError) {
        try connection.execute(PostgresLayout.nodes, within: patience)
        try tell(connection)
      } catch .refused {}
    }
  }

  private func tell(_ connection: PostgresConnection) throws(PostgresError) {
    try connection.execute(
      "INSERT INTO keyway.nodes VALUES ($1, now()) ON CONFLICT (url) DO UPDATE SET heard = now()", [.text(url)],
      within: patience)
    let followers = told.followers.withLock { $0 }
    if !followers.isEmpty {
      try connection.execute(
        """
        INSERT INTO keyway.nodes SELECT convert_from(url, 'UTF8'), now() FROM unnest($1::bytea[]) AS url
        ON CONFLICT (url) DO UPDATE SET heard = now()
        """, [.byteStrings(followers.map { Array($0.utf8) })], within: patience)
    }
    try connection.execute("DELETE FROM keyway.nodes WHERE heard < now() - interval '1 hour'", within: patience)
  }
}

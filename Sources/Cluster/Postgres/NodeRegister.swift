import Support

/// The table through which the nodes that share a journal find one another.
struct NodeRegister: Sendable {
  /// The address at which other nodes reach this one; empty for a program that is not a node.
  private let url: String
  /// The time limit of a call to the database.
  private let patience: Duration
  /// The time when this node last registered, and the followers that it registers.
  private let registration = Registration()

  private final class Registration: Sendable {
    let time = Locked<ContinuousClock.Instant?>(nil)
    /// The nodes that follow this one.
    let followers = Locked<[String]>([])
  }

  /// The interval at which a node registers.
  private static let pause = Duration.seconds(3)
  /// The maximum number of nodes that are read, and of followers that this node registers.
  private static let most: Int64 = 1_000

  init(url: String, patience: Duration) {
    (self.url, self.patience) = (url, patience)
  }

  /// Returns the addresses of the nodes that were registered in the last 15 seconds, the latest first.
  func urls(_ connection: PostgresConnection) throws(PostgresError) -> [String] {
    let result = try connection.execute(
      """
      SELECT url FROM keyway.nodes WHERE heard > now() - interval '15 seconds' ORDER BY heard DESC LIMIT $1
      """, [.integer(Self.most)], within: patience)
    return (0..<result.count).map { result.text($0, 0) }
  }

  /// Sets the other nodes that this node registers along with itself from now on.
  func vouch(for urls: [String]) {
    registration.followers.withLock { $0 = Array(Set(urls).subtracting([url]).sorted().prefix(Int(Self.most))) }
  }

  /// Registers this node and its followers every few seconds, and deletes entries that are more than an hour old.
  /// Ignores a refusal by the database.
  func note(_ connection: PostgresConnection) throws(PostgresError) {
    let isDue = registration.time.withLock { time in
      guard !url.isEmpty, time.map({ $0 + Self.pause <= .now }) ?? true else { return false }
      time = .now
      return true
    }
    guard isDue else { return }
    do throws(PostgresError) {
      try register(connection)
    } catch .refused(let code, let reason) {
      guard PostgresError.refused(code: code, reason).isMissingTable else { return }
      // An earlier version created the database, without this table.
      do throws(PostgresError) {
        try connection.execute(PostgresLayout.nodes, within: patience)
        try register(connection)
      } catch .refused {}
    }
  }

  private func register(_ connection: PostgresConnection) throws(PostgresError) {
    try connection.execute(
      "INSERT INTO keyway.nodes VALUES ($1, now()) ON CONFLICT (url) DO UPDATE SET heard = now()", [.text(url)],
      within: patience)
    let followers = registration.followers.withLock { $0 }
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

import CPostgres
import Glibc

/// A connection to a database. Every call ends within its time limit, whatever happens to the database.
///
/// Sendable although only one thread at a time may use libpq's connection: a connection has one owner at a time, the
/// one that took it out of the pool, or the thread that made it for itself.
final class PostgresConnection: @unchecked Sendable {
  private let handle: OpaquePointer
  /// The statements that the database has prepared for this connection.
  private var prepared: Set<PostgresStatement> = []
  /// True while statements are prepared; false once that has failed, since behind a pooler the next call may use
  /// another session.
  private var prepares = true

  /// The time limit for name resolution, connecting and the handshake of each host, in seconds, unless the address sets
  /// one.
  private static let connectSeconds = "3"
  /// The time after which the database cancels a statement, in milliseconds, so that a statement whose answer is no
  /// longer awaited ends.
  private static let statementMilliseconds = 30_000

  /// Connects to a database. `address` is a connection string of libpq, a URI or `key=value` words, with several hosts
  /// if need be. Only a host that accepts writes is used: a standby may lack commits that were confirmed. Waits for
  /// each host as long as `connect_timeout` says. Throws `unreachable`.
  init(_ address: String) throws(PostgresError) {
    // Later keywords override earlier ones.
    guard PostgresAddress.isReadable(address) else {
      throw .unreachable("nodes.journal is not a connection string that libpq can read")
    }
    let words: KeyValuePairs = [
      "connect_timeout": Self.connectSeconds, "fallback_application_name": "keyway", "dbname": address,
      "client_encoding": "UTF8", "target_session_attrs": "read-write",
    ]
    let opened = Self.withCStrings(words.map(\.key)) { keys in
      Self.withCStrings(words.map(\.value)) { values in PQconnectdbParams(keys, values, 1) }
    }
    guard let opened else { throw .unreachable("out of memory") }
    guard PQstatus(opened) == CONNECTION_OK, PQsetnonblocking(opened, 1) == 0 else {
      let reason = Self.words(PQerrorMessage(opened))
      PQfinish(opened)
      throw .unreachable(reason)
    }
    // Without a receiver, libpq writes notices to the standard error stream.
    PQsetNoticeProcessor(opened, { _, _ in }, nil)
    handle = opened
    do throws(PostgresError) {
      try prepare()
    } catch {
      throw .unreachable("\(error)")
    }
  }

  deinit { PQfinish(handle) }

  /// Sets up the session: a statement timeout, and durable commits if the database's default is not to wait for its
  /// disk.
  private func prepare() throws(PostgresError) {
    let patience = Duration.seconds(5)
    try execute("SET statement_timeout = \(Self.statementMilliseconds)", within: patience)
    let durability = try execute("SHOW synchronous_commit", within: patience)
    if durability.count == 1, durability.text(0, 0) == "off" {
      try execute("SET synchronous_commit = on", within: patience)
    }
  }

  /// True if the connection is open, and has no open transaction.
  var isIdle: Bool { PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE }

  /// Executes one statement with the parameters `$1`, `$2` …. Throws `refused`, or `lost` if the database has not
  /// reported the outcome within `patience`; the connection is then unusable.
  @discardableResult
  func execute(
    _ statement: String, _ parameters: [PostgresParameter] = [], within patience: Duration
  ) throws(PostgresError) -> PostgresResult {
    try answer(within: patience) { send(statement, parameters) }
  }

  /// Executes a statement that is used again and again: the database parses and plans it once for each connection, if
  /// possible.
  @discardableResult
  func execute(
    _ statement: PostgresStatement, _ parameters: [PostgresParameter], within patience: Duration
  ) throws(PostgresError) -> PostgresResult {
    let deadline = ContinuousClock.now + patience
    guard prepares else { return try execute(statement.text, parameters, within: patience) }
    do throws(PostgresError) {
      if !prepared.contains(statement) {
        let types = parameters.map(\.type)
        try answer(within: patience) {
          PQsendPrepare(handle, statement.name, statement.text, Int32(types.count), types) == 1
        }
        prepared.insert(statement)
      }
      return try answer(within: deadline - .now) { send(statement, parameters) }
    } catch {
      guard error.isAboutPreparing else { throw error }
      // The statement was not executed.
      prepares = false
      return try execute(statement.text, parameters, within: deadline - .now)
    }
  }

  /// Calls `send`, and returns the last result that the database gives.
  @discardableResult
  private func answer(within patience: Duration, _ send: () -> Bool) throws(PostgresError) -> PostgresResult {
    let deadline = ContinuousClock.now + patience
    guard send() else { throw .lost(Self.words(PQerrorMessage(handle))) }
    var last: PostgresResult?
    var mistake: PostgresError?
    while let next = try nextResult(before: deadline) {
      let result = PostgresResult(next)
      switch PQresultStatus(next) {
      case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY: last = result
      default: mistake = mistake ?? Self.mistake(next, of: handle)
      }
    }
    if let mistake { throw mistake }
    guard let last else { throw .lost(Self.words(PQerrorMessage(handle))) }
    return last
  }

  /// Executes statements in one transaction: everything that `body` does, or nothing. If it throws, the connection is
  /// unusable unless it is idle.
  func transaction<Result>(
    within patience: Duration, _ body: () throws(PostgresError) -> Result
  ) throws(PostgresError) -> Result {
    try execute("BEGIN", within: patience)
    let result: Result
    do throws(PostgresError) {
      result = try body()
    } catch {
      _ = try? execute("ROLLBACK", within: patience)
      throw error
    }
    try execute("COMMIT", within: patience)
    return result
  }

  /// The result of a wait.
  enum Arrival {
    /// Other connections have sent notifications; the newest record that they name, or nil for another change.
    case notification(UInt64?)
    /// The `wake` descriptor is readable, or the time is up.
    case nothing
    /// The connection is lost.
    case lost
  }

  /// Waits at most `patience` for a notification of another connection, or until `wake` is readable. Notifications of
  /// this connection are ignored.
  func waitForNotification(or wake: Int32, within patience: Duration) -> Arrival {
    var polled = [
      pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0),
      pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
    ]
    // Notifications may have arrived with the answer to a statement.
    if let news = takeNotifications() { return news }
    poll(&polled, 2, patience.pollMilliseconds)
    if polled[0].revents != 0, PQconsumeInput(handle) == 0 { return .lost }
    return takeNotifications() ?? (PQstatus(handle) == CONNECTION_OK ? .nothing : .lost)
  }

  /// Returns the notifications of other connections; nil if there are none.
  private func takeNotifications() -> Arrival? {
    var (newest, isNotified, isUnnamed): (UInt64, Bool, Bool) = (0, false, false)
    while let notification = PQnotifies(handle) {
      if notification.pointee.be_pid != PQbackendPID(handle) {
        isNotified = true
        if let payload = notification.pointee.extra, let revision = UInt64(String(cString: payload)) {
          newest = max(newest, revision)
        } else {
          isUnnamed = true
        }
      }
      PQfreemem(notification)
    }
    return isNotified ? .notification(isUnnamed ? nil : newest) : nil
  }

  // MARK: libpq

  private func send(_ statement: String, _ parameters: [PostgresParameter]) -> Bool {
    Self.withValues(of: parameters) { values, lengths, formats in
      PQsendQueryParams(
        handle, statement, Int32(parameters.count), parameters.map(\.type), values, lengths, formats, 1) == 1
    }
  }

  private func send(_ statement: PostgresStatement, _ parameters: [PostgresParameter]) -> Bool {
    Self.withValues(of: parameters) { values, lengths, formats in
      PQsendQueryPrepared(handle, statement.name, Int32(parameters.count), values, lengths, formats, 1) == 1
    }
  }

  /// Passes parameters to `body` in the form that libpq takes: their addresses, lengths and formats, which are all
  /// binary.
  private static func withValues(
    of parameters: [PostgresParameter], _ body: ([UnsafePointer<CChar>?], [Int32], [Int32]) -> Bool
  ) -> Bool {
    var storage: [UInt8] = []
    var starts: [Int] = []
    for parameter in parameters {
      starts.append(storage.count)
      parameter.append(to: &storage)
    }
    let ends = starts.dropFirst() + [storage.count]
    let lengths = zip(starts, ends).map { Int32($1 - $0) }
    // Ensures that an empty parameter at the end has an address too.
    storage.append(0)
    return storage.withUnsafeBytes { bytes in
      let base = bytes.bindMemory(to: CChar.self).baseAddress
      return body(starts.map { start in base.map { $0 + start } }, lengths, lengths.map { _ in 1 })
    }
  }

  /// Waits for the next result of the statement that was sent; nil if there are no more.
  private func nextResult(before deadline: ContinuousClock.Instant) throws(PostgresError) -> OpaquePointer? {
    while true {
      let unsent = PQflush(handle)
      guard unsent >= 0 else { throw .lost(Self.words(PQerrorMessage(handle))) }
      if unsent == 0, PQisBusy(handle) == 0 { return PQgetResult(handle) }
      let patience = deadline - .now
      guard patience > .zero else { throw .lost("timed out") }
      let events = POLLIN | (unsent == 1 ? POLLOUT : 0)
      var polled = pollfd(fd: PQsocket(handle), events: Int16(events), revents: 0)
      poll(&polled, 1, patience.pollMilliseconds)
      if polled.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0, PQconsumeInput(handle) == 0 {
        throw .lost(Self.words(PQerrorMessage(handle)))
      }
    }
  }

  private static func mistake(_ result: OpaquePointer, of handle: OpaquePointer) -> PostgresError {
    let reason = words(PQresultErrorMessage(result))
    guard let code = PQresultErrorField(result, keyway_postgres_sqlstate) else {
      return .lost(reason.isEmpty ? words(PQerrorMessage(handle)) : reason)
    }
    return .said(String(cString: code), reason)
  }

  /// Returns a message of libpq as one line.
  private static func words(_ message: UnsafePointer<CChar>?) -> String {
    guard let message else { return "" }
    let lines = String(cString: message).split(whereSeparator: \.isNewline).map { line in
      line.trimmingPrefix { $0.isWhitespace }
    }
    return lines.joined(separator: "; ")
  }

  /// Calls `body` with the texts as a list of C strings that ends with null.
  private static func withCStrings<Result>(
    _ texts: [String], _ body: ([UnsafePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies.map { UnsafePointer($0) } + [nil])
  }
}

extension Duration {
  /// The duration in whole milliseconds, rounded up, for `poll`.
  var pollMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    return Int32(clamping: max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
  }
}

/// The displayable part of the address of a database: its location, without user and password.
package enum PostgresAddress {
  private static let scheme = "postgres://"

  /// Returns the values that an address sets for libpq's keywords; nil if libpq cannot parse it.
  private static func values(of address: String) -> [String: String]? {
    guard let options = PQconninfoParse(address, nil) else { return nil }
    defer { PQconninfoFree(options) }
    var values: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { values[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return values
  }

  /// Returns a name of the database at an address, as libpq parses that: `postgres://a,b,c/keyway`.
  package static func name(of address: String) -> String {
    guard let values = values(of: address) else { return scheme }
    let host = values["host"] ?? values["hostaddr"] ?? ""
    let port = values["port"].map { ":\($0)" } ?? ""
    return "\(scheme)\(host)\(port)/\(values["dbname"] ?? "")"
  }

  /// Returns the address in a displayable form: with `***` for each password in it, or for all of it if libpq cannot
  /// parse it.
  package static func masked(_ address: String) -> String {
    let patterns = [
      /^(postgres(?:ql)?:\/\/[^:@\/?#]*):[^@\/]*@/, /((?:^|[?&\s])(?:ssl)?password\s*=\s*)(?:'(?:\\.|[^'])*'|[^&\s]*)/,
    ]
    var masked = address.replacing(patterns[0]) { "\($0.1):***@" }
    masked = masked.replacing(patterns[1]) { "\($0.1)***" }
    // Keywords can be written in other ways too, so let libpq parse the result.
    guard let shown = values(of: masked) else { return "***" }
    let secrets = [shown["password"], shown["sslpassword"]].compactMap(\.self)
    return secrets.allSatisfy { $0 == "***" } ? masked : "***"
  }

  /// Returns true if libpq can parse the address.
  fileprivate static func isReadable(_ address: String) -> Bool { values(of: address) != nil }

  /// Returns true if a text is such a name.
  package static func isName(_ text: String) -> Bool { text.hasPrefix(scheme) }
}

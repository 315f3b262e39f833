import CPostgres
import Glibc

/// A connection to a database. Every call ends within the time that it is given, whatever becomes of the database.
///
/// Sendable although libpq's connection may be used by one thread at a time: a connection has one owner at a time, the
/// one that took it out of the pool, or the thread that made it for itself.
final class PostgresConnection: @unchecked Sendable {
  private let handle: OpaquePointer
  /// The statements that the database has prepared for this connection.
  private var prepared: Set<PostgresStatement> = []
  /// Whether it prepares any: behind a pooler the next call may come to another session.
  private var prepares = true

  /// How long the names, addresses and greetings of each host may take, in seconds, where the address says nothing.
  private static let connectSeconds = "3"
  /// After how long the database gives up a statement of ours, so that one whose answer is no longer waited for ends.
  private static let statementMilliseconds = 30_000

  /// Connects as libpq reads `address`: a URI or `key=value` words, with several hosts if need be. Of these, only one
  /// that takes writes will do: a standby may know less than what was answered. Waits as long as `connect_timeout` says
  /// for each host. Throws `unreachable`.
  init(_ address: String) throws(PostgresError) {
    // What comes later wins.
    // libpq quotes what it cannot read, which may be a password.
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
    // Without a receiver libpq writes what is only for notice to the standard error stream.
    PQsetNoticeProcessor(opened, { _, _ in }, nil)
    handle = opened
    do throws(PostgresError) {
      try prepare()
    } catch {
      throw .unreachable("\(error)")
    }
  }

  deinit { PQfinish(handle) }

  /// What is answered is to be on the database's disk, whatever its default is, where that is weaker.
  private func prepare() throws(PostgresError) {
    let patience = Duration.seconds(5)
    try execute("SET statement_timeout = \(Self.statementMilliseconds)", within: patience)
    let durability = try execute("SHOW synchronous_commit", within: patience)
    if durability.count == 1, durability.text(0, 0) == "off" {
      try execute("SET synchronous_commit = on", within: patience)
    }
  }

  /// Whether it stands, and no transaction is open in it.
  var isIdle: Bool { PQstatus(handle) == CONNECTION_OK && PQtransactionStatus(handle) == PQTRANS_IDLE }

  /// Has the database carry out one statement, whose `$1`, `$2` … are the parameters. Throws `refused`, or `lost` where
  /// the database has not said within `patience` what became of it; then the connection is of no use any more.
  @discardableResult
  func execute(
    _ statement: String, _ parameters: [PostgresParameter] = [], within patience: Duration
  ) throws(PostgresError) -> PostgresResult {
    try answer(within: patience) { send(statement, parameters) }
  }

  /// The same for a statement that is carried out again and again: the database reads and plans it once for each
  /// connection, where that is possible.
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
      // Nothing was carried out.
      prepares = false
      return try execute(statement.text, parameters, within: deadline - .now)
    }
  }

  /// What the database answers to what `send` sends.
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

  /// Carries out statements in one transaction: all of what `body` does, or nothing. Where it throws, the connection is
  /// of no use any more unless it is idle.
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

  /// What a wait ended with.
  enum Arrival {
    /// Other connections have notified: of the newest record that they name, or of something else.
    case notification(UInt64?)
    /// What was to wake can be read, or the time is over.
    case nothing
    /// The connection is lost.
    case lost
  }

  /// Waits for a notification of another connection, or until `wake` can be read, `patience` at most. Its own
  /// notifications are none.
  func waitForNotification(or wake: Int32, within patience: Duration) -> Arrival {
    var polled = [
      pollfd(fd: PQsocket(handle), events: Int16(POLLIN), revents: 0),
      pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
    ]
    // What came with the answer to a statement is there already.
    if let news = takeNotifications() { return news }
    poll(&polled, 2, patience.pollMilliseconds)
    if polled[0].revents != 0, PQconsumeInput(handle) == 0 { return .lost }
    return takeNotifications() ?? (PQstatus(handle) == CONNECTION_OK ? .nothing : .lost)
  }

  /// What other connections have notified of; nil where none has.
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

  /// Lends parameters as libpq takes them: where each is, how long it is, and that it is in binary form.
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
    // So that an empty parameter at the end has an address too.
    storage.append(0)
    return storage.withUnsafeBytes { bytes in
      let base = bytes.bindMemory(to: CChar.self).baseAddress
      return body(starts.map { start in base.map { $0 + start } }, lengths, lengths.map { _ in 1 })
    }
  }

  /// The next result of what was sent; nil where there is none any more.
  private func nextResult(before deadline: ContinuousClock.Instant) throws(PostgresError) -> OpaquePointer? {
    while true {
      let unsent = PQflush(handle)
      guard unsent >= 0 else { throw .lost(Self.words(PQerrorMessage(handle))) }
      if unsent == 0, PQisBusy(handle) == 0 { return PQgetResult(handle) }
      let patience = deadline - .now
      guard patience > .zero else { throw .lost("the time is over") }
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

  /// A message of libpq in one line.
  private static func words(_ message: UnsafePointer<CChar>?) -> String {
    guard let message else { return "" }
    let lines = String(cString: message).split(whereSeparator: \.isNewline).map { line in
      line.trimmingPrefix { $0.isWhitespace }
    }
    return lines.joined(separator: "; ")
  }

  /// Calls `body` with the texts as C has lists of them: with a null at the end.
  private static func withCStrings<Result>(
    _ texts: [String], _ body: ([UnsafePointer<CChar>?]) -> Result
  ) -> Result {
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    return body(copies.map { UnsafePointer($0) } + [nil])
  }
}

extension Duration {
  /// For `poll`: whole milliseconds, rounded up.
  var pollMilliseconds: Int32 {
    let (seconds, attoseconds) = components
    return Int32(clamping: max(0, seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
  }
}

/// What may be said of the address of a database: where it is, without user and password.
package enum PostgresAddress {
  private static let scheme = "postgres://"

  /// The values that an address gives to libpq's keywords; nil where libpq cannot read it.
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

  /// A name of the database at an address, as libpq reads it: `postgres://a,b,c/keyway`.
  package static func name(of address: String) -> String {
    guard let values = values(of: address) else { return scheme }
    let host = values["host"] ?? values["hostaddr"] ?? ""
    let port = values["port"].map { ":\($0)" } ?? ""
    return "\(scheme)\(host)\(port)/\(values["dbname"] ?? "")"
  }

  /// The address as it may be shown to people: with `***` for each password in it, and for all of it where libpq cannot
  /// read it.
  package static func masked(_ address: String) -> String {
    let patterns = [
      /^(postgres(?:ql)?:\/\/[^:@\/?#]*):[^@\/]*@/, /((?:^|[?&\s])(?:ssl)?password\s*=\s*)(?:'(?:\\.|[^'])*'|[^&\s]*)/,
    ]
    var masked = address.replacing(patterns[0]) { "\($0.1):***@" }
    masked = masked.replacing(patterns[1]) { "\($0.1)***" }
    // A keyword may be written in other ways too.
    guard let shown = values(of: masked) else { return "***" }
    let secrets = [shown["password"], shown["sslpassword"]].compactMap(\.self)
    return secrets.allSatisfy { $0 == "***" } ? masked : "***"
  }

  /// True if libpq can read the address.
  fileprivate static func isReadable(_ address: String) -> Bool { values(of: address) != nil }

  /// Whether a text is such a name.
  package static func isName(_ text: String) -> Bool { text.hasPrefix(scheme) }
}

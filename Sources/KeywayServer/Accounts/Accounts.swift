import KeyValueModel
import Store
import Support

/// The accounts of the store, as commits have left them.
///
/// `contents` is the only mutable state; its lock is held only for a lookup or a change.
final class Accounts: Sendable {
  /// A request for a change, on its way to a commit.
  struct Write: Sendable {
    /// The change that is wanted. What a setting leaves out stays as the commit finds it.
    enum Change: Sendable {
      case set(password: PasswordHash?, claims: JSONObject?)
      case remove
    }

    let name: AccountName
    let change: Change
    fileprivate let number: Int

    /// Returns what the commit does to an account; nil stands for none. Without a password there is nothing to set.
    fileprivate func applied(to former: Account?) -> AccountChange {
      guard case .set(let password, let claims) = change, let password = password ?? former?.password else {
        return .remove(name)
      }
      // It keeps the name under which it was created.
      return .set(Account(former?.name ?? name, password: password, claims: claims ?? former?.claims ?? [:]))
    }
  }

  private struct Entry {
    let account: Account
    /// The revision of the commit that set it.
    let revision: Revision
  }

  private struct Contents {
    var entries: [AccountName: Entry] = [:]
    /// The marks of all accounts.
    var marks: Set<KeyMark> = []
    /// The sizes of all accounts in bytes.
    var bytes = 0
    /// Changes that the writer is committing, by the name of the account and the number of the write.
    var pending: [AccountName: [Int: (change: AccountChange, revision: Revision)]] = [:]
    var lastNumber = 0

    /// Returns the account of a name as the last change on its way before a revision leaves it.
    func latest(_ name: AccountName, before revision: Revision) -> Account? {
      let changes = pending[name]?.values.filter { $0.revision < revision } ?? []
      guard let last = changes.max(by: { $0.revision < $1.revision }) else { return entries[name]?.account }
      if case .set(let account) = last.change { return account }
      return nil
    }

    mutating func apply(_ change: AccountChange, at revision: Revision) {
      if let former = entries.removeValue(forKey: change.name)?.account {
        marks.remove(former.mark)
        bytes -= former.weight
      }
      guard case .set(let account) = change else { return }
      entries[account.name] = Entry(account: account, revision: revision)
      marks.insert(account.mark)
      bytes += account.weight
    }
  }

  /// The maximum size of all accounts in bytes.
  private let limit: Int
  private let contents = Locked(Contents())

  /// Creates an empty table of at most `limit` bytes.
  init(limit: Int) { self.limit = limit }

  /// The number of accounts.
  var count: Int { contents.withLock { $0.entries.count } }

  /// Returns the account of a name, or nil if there is none.
  func account(named name: AccountName) -> Account? { contents.withLock { $0.entries[name]?.account } }

  /// Returns true if an account has a mark: then its sessions go on.
  func has(_ mark: KeyMark) -> Bool { contents.withLock { $0.marks.contains(mark) } }

  /// Returns all accounts, by name.
  func all() -> [Account] {
    contents.withLock { $0.entries.values.map(\.account) }.sorted { $0.name < $1.name }
  }

  /// Throws `overloaded` if there is no room for an account with these claims; nil stands for those that it has.
  func checkRoom(for name: AccountName, claims: JSONObject?) throws(Problem) {
    let weight = claims.map { Account.weight(name, claimBytes: Value.object($0).json.utf8.count) }
    try contents.withLock { [limit] contents throws(Problem) in
      let present = contents.entries[name]?.account.weight
      let added = (weight ?? present ?? Account.weight(name, claimBytes: 0)) - (present ?? 0)
      guard contents.bytes + added <= limit else {
        throw Problem(.overloaded, "the accounts take as many bytes as access.accountBytes allows")
      }
    }
  }

  // MARK: Commits

  /// Returns the write of a change, to be prepared and concluded.
  func write(_ change: Write.Change, of name: AccountName) -> Write {
    contents.withLock { contents in
      contents.lastNumber += 1
      return Write(name: name, change: change, number: contents.lastNumber)
    }
  }

  /// Returns the attachment of the commit of a write, which has a revision now. Called on the writer. The commit may
  /// still fail, and may be prepared again with another revision.
  func prepare(_ write: Write, at revision: Revision) -> [UInt8] {
    contents.withLock { contents in
      let change = write.applied(to: contents.latest(write.name, before: revision))
      contents.pending[write.name, default: [:]][write.number] = (change, revision)
      return change.bytes
    }
  }

  /// Concludes a write, whether or not it was prepared: its commit is durable, or has failed. Writes are concluded in
  /// the order of their commits. Returns the account before and after it.
  @discardableResult
  func conclude(_ write: Write, isDone: Bool) -> (former: Account?, present: Account?) {
    contents.withLock { contents in
      let former = contents.entries[write.name]?.account
      let prepared = contents.pending[write.name]?.removeValue(forKey: write.number)
      if contents.pending[write.name]?.isEmpty == true { contents.pending[write.name] = nil }
      guard let (change, revision) = prepared, isDone else { return (former, former) }
      contents.apply(change, at: revision)
      return (former, contents.entries[write.name]?.account)
    }
  }

  /// Applies the changes among attachments, oldest first, that come from other nodes or from before a restart, whatever
  /// the limit is.
  func restore(_ attachments: [StoredAttachment]) {
    for attachment in attachments {
      guard let change = AccountChange(attachment.bytes) else { continue }
      contents.withLock { $0.apply(change, at: attachment.revision) }
    }
  }

  /// Returns the accounts as the commits up to a revision have left them, as attachments, oldest first. Those that a
  /// later commit has set or removed may be left out; that commit comes after the revision.
  func kept(upTo last: Revision, milliseconds: Int64) -> [StoredAttachment] {
    let (entries, pending) = contents.withLock { contents in
      (contents.entries, contents.pending.values.flatMap(\.values).filter { $0.revision <= last })
    }
    var accounts = entries.filter { $0.value.revision <= last }
    for (change, revision) in pending.sorted(by: { $0.revision < $1.revision }) {
      if case .set(let account) = change {
        accounts[change.name] = Entry(account: account, revision: revision)
      } else {
        accounts[change.name] = nil
      }
    }
    return accounts.values.sorted { $0.revision < $1.revision }.map { entry in
      StoredAttachment(
        revision: entry.revision, milliseconds: milliseconds, bytes: AccountChange.set(entry.account).bytes)
    }
  }
}

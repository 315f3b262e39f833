/// When the database is asked about what other nodes have told of: decides, and asks nothing by itself.
///
/// It is asked at once, but where other nodes hand their records to this one: then those that it has heard of are
/// likely to be on their way, and are left some time to come. What has come needs no question.
struct HeardNews {
  /// When a time is, of the clock that only grows.
  typealias Time = ContinuousClock.Instant

  /// For how long records that may be on their way are waited for.
  static let patience = Duration.milliseconds(25)

  /// When the database is to be asked; nil where there is nothing to ask.
  private(set) var due: Time?
  /// The revision that is waited for until then; nil where what has changed is no record, or is not said.
  private var awaited: UInt64?
  /// The newest revision that was heard of.
  private var newest: UInt64 = 0

  /// Another node has told of a record, or of something else. `known` is the newest record that this node has, and
  /// `isHanded` whether others hand it theirs.
  mutating func hear(_ revision: UInt64?, at now: Time, known: UInt64, isHanded: Bool) {
    guard let revision else {
      (due, awaited) = (now, nil)
      return
    }
    guard revision > known else { return }
    newest = max(newest, revision)
    guard due == nil else { return }
    (due, awaited) = (isHanded ? now + Self.patience : now, revision)
  }

  /// Whether the database is to be asked now, which is taken to be done then.
  mutating func isDue(at now: Time, known: UInt64) -> Bool {
    guard let due else { return false }
    if let awaited, awaited <= known {
      self.due = newest > known ? now + Self.patience : nil
      self.awaited = newest
      return false
    }
    guard due <= now else { return false }
    self.due = nil
    return true
  }
}

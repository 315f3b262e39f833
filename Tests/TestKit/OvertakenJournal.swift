package import Store
package import Support

/// A journal that others append to right before each append of this node, as `overtaking` says.
package final class OvertakenJournal: ForwardingSharedJournal {
  /// What others do before each append.
  package struct Overtaking: Sendable {
    /// Has another node append.
    package var append: (@Sendable () -> Void)?
    /// How often it was called.
    package var count = 0
    /// Who is said to have appended last; as the journal says, where it is nil.
    package var pen: String?
  }

  /// The journal that is shared.
  package let sharedBase: any SharedJournal
  /// What others do from now on.
  package let overtaking = Locked(Overtaking())

  /// A journal over another, which nobody is made to append to before `overtaking` says so.
  package init(_ base: any SharedJournal) { sharedBase = base }

  /// See `TransactionJournal.append`.
  package func append(_ records: [JournalRecord], after expected: UInt64) throws(JournalError) {
    let append = overtaking.withLock { overtaking in
      if overtaking.append != nil { overtaking.count += 1 }
      return overtaking.append
    }
    append?()
    try sharedBase.append(records, after: expected)
  }

  /// Nobody before another node has overtaken this one: it appends by itself until then.
  package var pen: String {
    let (pen, count) = overtaking.withLock { ($0.pen, $0.count) }
    return pen ?? (count == 0 ? "" : sharedBase.pen)
  }
}

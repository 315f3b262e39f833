package import KeyValueModel

/// Where a stream begins: with the present state, or where an earlier one ended.
package enum Resumption: Hashable, Sendable {
  /// Why a cursor cannot be resumed.
  package enum Reset: String, Sendable {
    /// The history no longer reaches back so far, or the object did not exist then.
    case compacted
    /// More was missed than `streams.replayBytes` holds.
    case overflow
    /// The cursor is malformed, of another store, or from the future.
    case epoch
  }

  /// Nothing was asked for: the present state.
  case fresh
  /// Everything after this revision.
  case after(Revision)
  /// The cursor is of no use.
  case reset(Reset)

  /// What a cursor means to the store of `epoch` whose history runs from `oldest` to `present`.
  package init(cursor text: String?, epoch: String, oldest: Revision, present: Revision) {
    guard let text else {
      self = .fresh
      return
    }
    guard let cursor = Cursor(text), cursor.epoch == epoch, cursor.revision <= present else {
      self = .reset(.epoch)
      return
    }
    self = cursor.revision < oldest ? .reset(.compacted) : .after(cursor.revision)
  }

  /// The revision to go on from, where the cursor can be resumed.
  package var revision: Revision? { if case .after(let revision) = self { revision } else { nil } }
}

import KeyValueModel

/// Which revisions a cell of a stream that is resumed is told, and which it remembers, when they are gone through once
/// more from the revision that its client has.
struct CellGate: Hashable {
  /// What becomes of what a commit did to the cell.
  enum Way {
    /// Its client has it, or the cell remembers it already.
    case drop
    /// Its client is told, although the cell is off screen by now.
    case tell
    /// Its client is told, and a cell off screen remembers it.
    case pass
  }

  /// The last revision whose state the client has.
  let toldUpTo: Revision
  /// The revision at which the cell was last told the state of what it shows. What commits did up to there to that is
  /// not for it: it may have shown something else, or nothing.
  let beginsAt: Revision
  /// The revisions of which the client may lack what became of an object that the cell showed before; nil where there
  /// are none.
  let former: ClosedRange<Revision>?
  /// The last revision that the cell was on screen at; nil while it is on screen.
  let hiddenAfter: Revision?
  /// Up to where a cell off screen remembers by itself what it missed: when the stream was cut.
  let rememberedUpTo: Revision

  /// Whether what a commit did is of an object that the cell showed before.
  func isOfFormer(_ revision: Revision) -> Bool { former?.contains(revision) ?? false }

  /// What becomes of what a commit did.
  func way(of revision: Revision) -> Way {
    if isOfFormer(revision) { return .tell }
    guard let hiddenAfter else { return revision > toldUpTo ? .pass : .drop }
    if revision <= hiddenAfter { return revision > toldUpTo ? .tell : .drop }
    return revision > rememberedUpTo ? .pass : .drop
  }
}

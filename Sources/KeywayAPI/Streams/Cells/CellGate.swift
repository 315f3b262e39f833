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
  /// The last revision that the cell was on screen at; nil while it is on screen.
  let hiddenAfter: Revision?
  /// Up to where a cell off screen remembers by itself what it missed: when the stream was cut.
  let rememberedUpTo: Revision

  /// What becomes of what a commit did.
  func way(of revision: Revision) -> Way {
    guard let hiddenAfter else { return revision > toldUpTo ? .pass : .drop }
    if revision <= hiddenAfter { return revision > toldUpTo ? .tell : .drop }
    return revision > rememberedUpTo ? .pass : .drop
  }
}

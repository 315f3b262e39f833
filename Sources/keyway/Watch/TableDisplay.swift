import KeywayClient
import Support

/// A live table on the terminal of standard output, drawn anew in its place after each event, and when the terminal
/// gets another size.
///
/// Mutable are the table and what of it stands on the terminal, both behind one lock, under which it is also drawn:
/// events come from one task, notices from another, and sizes from a third.
final class TableDisplay: WatchDisplay {
  private struct State: Sendable {
    var table: LiveTable
    var screen = TableScreen(isColoured: StandardOutput.isColoured)
  }

  private let state: Locked<State>

  init(_ table: LiveTable) {
    state = Locked(State(table: table))
    redraw()
  }

  func show(_ event: ServerSentEvent) throws {
    try draw { table throws(LiveListError) in try table.apply(event) }
  }

  func note(_ notice: EventStreamNotice) {
    draw { $0.note(notice) }
  }

  func redraw() {
    draw { _ in }
  }

  func end() {
    state.withLock { StandardOutput.draw($0.screen.end()) }
  }

  private func draw<Failure: Error>(after change: (inout LiveTable) throws(Failure) -> Void) throws(Failure) {
    try state.withLock { (state) throws(Failure) in
      try change(&state.table)
      let size = TerminalSize.current
      StandardOutput.draw(state.screen.draw(state.table.lines(for: size), size: size))
    }
  }
}

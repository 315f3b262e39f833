import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import KeywayClient
import Support
import UnixSignals

/// Implements `keyway watch`: follows a resource until it is interrupted.
struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Prints what changes in an object, in key paths of it, or in a live query, as it happens.",
    discussion: """
      keyway watch Account/1
      keyway watch Account/1 balance,owner.fullName --options old,new
      keyway watch Department/1 employees,employees.@count
      keyway watch Airport --filter "state == 'TX'" --sort city --limit 20
      keyway watch Airport --filter "latitude > 60.0" --section state --keys city,name
      keyway watch 'Employee?filter=salary > 1000&sort=-salary' --json

      An entity is a live query: on a terminal it is a live table, else a line for each change. Resumes with the last
      event id after a lost connection; remarks about that go to standard error.
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "Key paths of the object, joined by commas (default: its display keys).")
  var keyPaths: String?

  @Option(help: "What a change reports: new, old, initial and prior; none for the kind only.")
  var options = "initial,old,new"

  @OptionGroup var query: QueryOptions

  @Option(help: "A text that every change repeats.")
  var context: String?

  @Option(help: ArgumentHelp("Resume after this event id.", valueName: "cursor"))
  var since: String?

  @Flag(help: "One line of JSON for each event: {\"event\":…,\"id\":…,\"data\":…}.")
  var json = false

  @Flag(help: "Print heartbeats too; otherwise they are neither printed nor counted.")
  var heartbeats = false

  @Option(help: ArgumentHelp("Stop after this many events.", valueName: "events"))
  var count: Int?

  @OptionGroup var client: ClientOptions

  func validate() throws {
    if let count, count < 1 { throw ValidationError("--count must be at least 1") }
    try query.check(resource, path: path)
  }

  func run() async throws {
    let client = try client.client()
    if isLiveQuery { await client.remarkAnonymity() }
    let display = display
    let connection = EventStreamConnection(
      client, path: path, lastEventID: since ?? "", endsAfterGone: isOfOneObject,
      notify: { display.note($0) })
    try await Interruption.cancelling { [self] in
      let resizing = Task { for await _ in await UnixSignalsSequence(trapping: .sigwinch) { display.redraw() } }
      defer {
        resizing.cancel()
        display.end()
      }
      var left = count ?? .max
      for try await event in connection.events {
        try display.show(event)
        if heartbeats || event.event != "heartbeat" { left -= 1 }
        if left == 0 { break }
      }
      await connection.close()
    }
  }

  /// The path of the stream, with its query.
  var path: String {
    // Options are for key paths only: a live query would refuse them.
    ResourcePath.adding(
      query.parameters + [("options", isOfOneObject ? options : nil), ("context", context)],
      to: ResourcePath.path(resource, keyPath: keyPaths))
  }

  /// True if the stream is of an object or its key paths, and so ends with the object.
  var isOfOneObject: Bool { objectPath.count > 1 }

  /// True if the stream is of the objects of an entity.
  private var isLiveQuery: Bool { objectPath.count == 1 }

  private var objectPath: ArraySlice<Substring> {
    QueryOptions.objectPath(ResourcePath.path(resource, keyPath: keyPaths))
  }

  /// The display of the events. A stream that resumes from a cursor begins without rows, so it has no table.
  private var display: any WatchDisplay {
    guard isLiveQuery, !json, since == nil, StandardOutput.isScreen else {
      return LineDisplay(isJSON: json, showsHeartbeats: heartbeats)
    }
    return TableDisplay(LiveTable(keys: query.keys?.split(separator: ",").map(String.init) ?? []))
  }
}

/// A display of the events of `keyway watch`.
private protocol WatchDisplay: Sendable {
  /// Shows the next event. Throws an error that ends the command.
  func show(_ event: ServerSentEvent) throws
  /// Shows a notice about the connection. Called from any thread.
  func note(_ notice: EventStreamNotice)
  /// Shows the same again, since the size of the terminal has changed. Called from any thread.
  func redraw()
  /// Restores the terminal. This is the last call.
  func end()
}

extension WatchDisplay {
  func redraw() {}
  func end() {}
}

/// Shows events as lines on standard output, and remarks about the connection on standard error.
private struct LineDisplay: WatchDisplay {
  var isJSON: Bool
  var showsHeartbeats: Bool

  func show(_ event: ServerSentEvent) {
    guard showsHeartbeats || event.event != "heartbeat" else { return }
    if isJSON { return StandardOutput.line(EventLine.json(event)) }
    let time = EventLine.time(Date())
    let isTerminal = StandardOutput.isTerminal
    for line in EventLine.lines(event) {
      StandardOutput.line("\(time) \(isTerminal ? TerminalText.clean(line, maximumScalars: .max) : line)")
    }
  }

  func note(_ notice: EventStreamNotice) {
    guard case .reconnecting(let reason, let delay) = notice else { return }
    StandardError.line("keyway: \(reason); coming back in \(Double(delay) / 1000) s")
  }
}

/// A live table on the terminal of standard output, redrawn in its place after each event, and when the size of the
/// terminal changes.
///
/// The table and its screen are mutable, behind one lock, which is held while they are drawn: events come from one
/// task, notices from another, and sizes from a third.
private final class TableDisplay: WatchDisplay {
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

/// The drawing on a terminal, which the next drawing overwrites: lines go in, text with escape sequences comes out.
///
/// The table stays on the main screen, below what was there before, and is still there afterwards.
struct TableScreen: Sendable {
  private enum Phase {
    case before, drawn, over
  }

  /// True if marks have colours.
  private let isColoured: Bool
  private var phase = Phase.before
  private var lineCount = 0
  private var size: TerminalSize?

  init(isColoured: Bool) { self.isColoured = isColoured }

  /// Returns the text that replaces the last lines with these.
  mutating func draw(_ lines: [StyledLine], size: TerminalSize) -> String {
    guard phase != .over else { return "" }
    var text = ""
    if phase == .before {
      // Hides the cursor and disables line wrapping, whatever the terminal thinks of a character's width.
      text += "\u{1B}[?25l\u{1B}[?7l"
    } else if size != self.size {
      // A terminal that changed its size has moved the lines: start on an empty screen.
      text += "\u{1B}[H\u{1B}[2J"
    } else {
      text += "\r"
      if lineCount > 1 { text += "\u{1B}[\(lineCount - 1)A" }
    }
    text += lines.map { $0.ansi(isColoured: isColoured) + "\u{1B}[K" }.joined(separator: "\r\n") + "\u{1B}[J"
    phase = .drawn
    lineCount = lines.count
    self.size = size
    return text
  }

  /// Returns the text that restores the terminal, with the table on it. Nothing is drawn afterwards.
  mutating func end() -> String {
    defer { phase = .over }
    return phase == .drawn ? "\r\n\u{1B}[?7h\u{1B}[?25h" : ""
  }
}

import ArgumentParser
import CommandSupport
import Foundation
import KeyValueModel
import KeywayClient
import UnixSignals

/// `keyway watch`: follows a resource until it is interrupted.
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

      An entity is a live query: on a terminal it is a table that follows, else a line for each change.
      Resumes with the last event id after a lost connection; remarks about that go to standard error.
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "Key paths of the object, joined by commas; without, its display keys.")
  var keyPaths: String?

  @Option(help: "What a change says, of new, old, initial and prior; none for the kind only.")
  var options = "initial,old,new"

  @OptionGroup var query: QueryOptions

  @Option(help: "A text that comes back in every change.")
  var context: String?

  @Option(help: ArgumentHelp("Go on behind this event id.", valueName: "cursor"))
  var since: String?

  @Flag(help: "One line of JSON for each event: {\"event\":…,\"id\":…,\"data\":…}.")
  var json = false

  @Flag(help: "Print heartbeats too; otherwise they are neither printed nor counted.")
  var heartbeats = false

  @Option(help: ArgumentHelp("Stop after this many events.", valueName: "events"))
  var count: Int?

  @OptionGroup var client: ClientOptions

  func validate() throws {
    if let count, count < 1 { throw ValidationError("--count is at least 1") }
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

  /// The path of the stream with its query.
  var path: String {
    // Only key paths have options: a live query would refuse them.
    ResourcePath.adding(
      query.parameters + [("options", isOfOneObject ? options : nil), ("context", context)],
      to: ResourcePath.path(resource, keyPath: keyPaths))
  }

  /// Whether the stream is of an object or of key paths of one, and so ends with it.
  var isOfOneObject: Bool { objectPath.count > 1 }

  /// Whether the stream is of the objects of an entity.
  var isLiveQuery: Bool { objectPath.count == 1 }

  private var objectPath: ArraySlice<Substring> {
    QueryOptions.objectPath(ResourcePath.path(resource, keyPath: keyPaths))
  }

  /// How the events are shown. A stream that goes on behind a cursor begins without rows, so there is no table of it.
  private var display: any WatchDisplay {
    guard isLiveQuery, !json, since == nil, StandardOutput.isScreen else {
      return LineDisplay(isJSON: json, showsHeartbeats: heartbeats)
    }
    return TableDisplay(LiveTable(keys: query.keys?.split(separator: ",").map(String.init) ?? []))
  }
}

internal import ArgumentParser
internal import Foundation
internal import KeyValueModel
internal import KeywayClient

/// `keyway watch`: follows a resource until it is interrupted.
struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Prints what changes in an object, in key paths of it, or in a live query, as it happens.",
    discussion: """
      keyway watch Account/1
      keyway watch Account/1 balance,owner.fullName --options old,new
      keyway watch Department/1 employees,employees.@count
      keyway watch 'Employee?filter=salary > 1000&sort=-salary' --json

      Comes back with the last event id after a lost connection; remarks about that go to standard error.
      """)

  @Argument(help: "A reference (Account/1), an entity with a query, or a path that begins with a slash.")
  var resource: String

  @Argument(help: "Key paths of the object, joined by commas; without, its display keys.")
  var keyPaths: String?

  @Option(help: "What to be told, of new, old, initial and prior; none for the kind only.")
  var options = "initial,old,new"

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
  }

  func run() async throws {
    let connection = EventStreamConnection(
      try client.client(), path: path, lastEventID: since ?? "", endsAfterGone: isOfOneObject, notify: Self.report)
    try await Interruption.cancelling { [self] in
      var left = count ?? .max
      for try await event in connection.events where heartbeats || event.event != "heartbeat" {
        display(event)
        left -= 1
        if left == 0 { break }
      }
      await connection.close()
    }
  }

  /// The path of the stream with its query.
  var path: String {
    // Only key paths have options: a live query would refuse them.
    ResourcePath.adding(
      [("options", isOfOneObject ? options : nil), ("context", context)],
      to: ResourcePath.path(resource, keyPath: keyPaths))
  }

  /// Whether the stream is of an object or of key paths of one, and so ends with it.
  var isOfOneObject: Bool {
    let path = ResourcePath.path(resource).prefix { $0 != "?" }
    return path.hasPrefix("/v1/objects/") && path.split(separator: "/").count > 3
  }

  private func display(_ event: ServerSentEvent) {
    guard !json else { return StandardOutput.line(EventLine.json(event)) }
    let time = EventLine.time(Date())
    for line in EventLine.lines(event) { StandardOutput.line("\(time) \(line)") }
  }

  @Sendable private static func report(_ notice: EventStreamNotice) {
    guard case .reconnecting(let reason, let delay) = notice else { return }
    StandardError.line("keyway: \(reason); coming back in \(Double(delay) / 1000) s")
  }
}

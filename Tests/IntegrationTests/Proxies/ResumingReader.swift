import KeyValueModel
import TestKit

/// A client that reads a stream through a proxy, and resumes from its last id whenever the stream is cut.
final class ResumingReader {
  /// One block of the stream.
  struct Event {
    let lines: [String]

    /// Returns the text of a field; nil if the block does not have it.
    func field(_ name: String) -> String? {
      lines.first { $0.hasPrefix(name + ": ") }.map { String($0.dropFirst(name.count + 2)) }
    }

    /// The new values of its changes, as JSON.
    var values: [String] {
      guard let data = field("data"), let json = try? Value(json: data) else { return [] }
      return json["changes"].items.map { $0["new"].json }
    }
  }

  private let proxy: FrontProxy
  private let target: String
  private var child: ChildProcess
  private var lastID: String?
  /// The events of ended connections.
  private var past: [Event] = []
  private(set) var connections = 1

  init(_ target: String, through proxy: FrontProxy) throws {
    (self.target, self.proxy) = (target, proxy)
    child = try proxy.curl(target, "-H", "Accept: text/event-stream")
  }

  /// The whole events of the present connection.
  private var present: [Event] {
    // An error response is not a stream.
    guard child.errors.contains("text/event-stream") else { return [] }
    var events: [Event] = []
    var lines: [String] = []
    for line in child.lines {
      if !line.isEmpty {
        lines.append(line)
      } else if !lines.isEmpty {
        events.append(Event(lines: lines))
        lines = []
      }
    }
    return events
  }

  /// All events so far.
  var events: [Event] { past + present }

  /// The response head of the present connection.
  var head: String { child.errors }

  /// Reconnects if the connection has ended.
  private func reconnect() throws {
    guard !child.isRunning else { return }
    past += present
    lastID = past.compactMap { $0.field("id") }.last ?? lastID
    child = try proxy.curl(
      target, "-H", "Accept: text/event-stream", "-H", "Last-Event-ID: \(lastID ?? "")")
    connections += 1
  }

  /// Reads until there are `count` values, or the deadline passes. Returns the values of all changes.
  func values(until count: Int) throws -> [String] {
    _ = try Deadline().awaits(pauseMicroseconds: 20_000) {
      try reconnect()
      return values.count >= count
    }
    return values
  }

  private var values: [String] { events.flatMap(\.values) }
}

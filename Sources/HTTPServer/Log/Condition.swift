package import Logging

/// Something that an operator may have to act on, and that lasts for a while: a limit that is met, a client that is cut
/// again and again, a store that takes no writes.
package struct Condition: Hashable, Sendable {
  /// The name in metrics and in the log: lower case, words joined by underscores.
  package let name: String
  /// What is the case, and which setting or what else decides on it.
  package let message: String
  /// How severe it is that it begins.
  package let level: Logger.Level

  /// A condition with its name, what it means, and how severe that is.
  package init(_ name: String, _ message: String, level: Logger.Level = .warning) {
    (self.name, self.message, self.level) = (name, message, level)
  }

  /// Equal when they have the same name.
  package static func == (left: Condition, right: Condition) -> Bool { left.name == right.name }

  /// Feeds what equality looks at.
  package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Condition {
  /// A connection was closed as it was accepted.
  package static let connections = Condition(
    "connections", "connections are closed as they come: connections.maximum or connections.perAddress is met")
  /// A descriptor was needed and there was none.
  package static let descriptors = Condition(
    "descriptors", "no descriptor is left, and connections are closed: raise the limit of the process (ulimit -n)",
    level: .error)
  /// A stream was refused.
  package static let streams = Condition("streams", "streams are refused: a limit of open streams is met")
  /// A live query was refused.
  package static let queries = Condition(
    "queries", "live queries are refused: queries.maximum or queries.rows is met")
  /// A request was refused because too much waits.
  package static let overload = Condition(
    "overload", "requests are refused: more waits than the limits of queues and memory allow")
  /// A stream was cut because its client took nothing.
  package static let stalled = Condition(
    "stalled", "streams are cut: their clients read nothing for streams.stallSeconds")
  /// A stream was ended because too much waited for its client.
  package static let overflow = Condition(
    "overflow", "streams are ended: more waits for their clients than streams.pendingBytes or memory.clientBytes allow")
}

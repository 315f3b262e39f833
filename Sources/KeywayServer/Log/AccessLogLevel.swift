/// Which requests the access log tells of.
package enum AccessLogLevel: String, CaseIterable, Sendable {
  /// None.
  case off
  /// Those that were answered with a status from 400 on, or not at all, and streams whose clients were too slow.
  case errors
  /// All.
  case all
}

/// How the subscribers lose their streams.
enum ReconnectCut: Hashable, Sendable {
  /// They close their connections; the server goes on.
  case close
  /// They do, and when the revisions that they miss are written, the server is ended with a signal and started again.
  case restart(signal: Int32)
}

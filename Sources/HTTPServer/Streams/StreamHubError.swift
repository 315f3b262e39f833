/// Why a hub opened no stream.
package enum StreamHubError: Error, Equatable {
  /// As many streams are open as the limits allow.
  case tooManyStreams
  /// As many streams of this client are open as the limits allow one.
  case tooManyStreamsOfClient
  /// The client, or all together, hold as much memory as they may.
  case noMemory
  /// The hub has been drained or stopped.
  case draining
}

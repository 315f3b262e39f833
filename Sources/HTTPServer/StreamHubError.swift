/// Why a hub opened no stream.
package enum StreamHubError: Error, Equatable {
  /// As many streams are open as the limits allow.
  case tooManyStreams
  /// As many streams of this client are open as the limits allow one.
  case tooManyStreamsOfClient
  /// The hub has been drained or stopped.
  case draining
}

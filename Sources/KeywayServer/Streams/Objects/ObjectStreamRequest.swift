import HTTPServer
import KeyValueModel
import KeyValueObserving

/// What a client asks for with `GET /v1/objects/{Entity}/{id}` or `…/{keyPath}` as a stream.
struct ObjectStreamRequest: Sendable {
  /// The object.
  let object: Reference
  /// The key paths; nil for the display keys.
  let keyPaths: [String]?
  /// What the subscriber is notified of.
  let options: ObservingOptions
  /// Given back with every change.
  let context: EchoedText?
  /// The cursor to go on from, as it came.
  let cursor: String?
  /// What becomes of the stream when its reader is slow.
  let overflow: OverflowPolicy
  /// Who asks.
  let client: ClientAddress
  /// What they may read; nil for everything.
  let viewer: Viewer?
}

package import HTTPServer
package import KeyValueModel
package import KeyValueObserving

/// What a client asks for with `GET /v1/objects/{Entity}/{id}` or `…/{keyPath}` as a stream.
package struct ObjectStreamRequest: Sendable {
  /// The object.
  package let object: Reference
  /// The key paths; nil for the display keys.
  package let keyPaths: [String]?
  /// What the subscriber is notified of.
  package let options: ObservingOptions
  /// Given back with every change.
  package let context: EchoedText?
  /// The cursor to go on from, as it came.
  package let cursor: String?
  /// What becomes of the stream when its reader is slow.
  package let overflow: OverflowPolicy
}

import HTTPServer
import KeyValueModel
import ModelStore

/// The subscription of a stream that resumes behind its object's deletion: it receives what led there, observes
/// nothing, and ends.
final class EndedObject: Subscription {
  private let key: ObjectTopic.Key

  init(_ key: ObjectTopic.Key) { self.key = key }

  func describe(in body: inout JSONObject) { key.describe(observations: 0, in: &body) }

  func beginLag(_ id: StreamID, firstMissed: StreamPosition, _ publication: borrowing Publication) {}

  func catchUp(_ id: StreamID, _ publication: borrowing Publication) -> (@Sendable () -> Void)? { nil }

  func end(_ id: StreamID, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication) {}
}

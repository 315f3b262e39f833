import HTTPServer
import KeyValueModel
import Store

/// The subscription of a stream that resumes at a revision before its object was deleted: it receives what led to the
/// deletion, observes nothing, and ends.
final class EndedObject: Subscription {
  private let key: ObjectTopic.Key

  init(_ key: ObjectTopic.Key) { self.key = key }

  func describe(in body: inout JSONObject) { key.describe(observations: 0, in: &body) }

  func end(
    _ id: StreamID, _ cut: StreamCut?, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication
  ) {}
}

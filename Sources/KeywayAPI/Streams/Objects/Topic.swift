internal import HTTPServer
internal import KeyValueModel
internal import KeyValueObserving

/// What a stream of one object observes. Streams that ask for the same share one topic: it is evaluated and encoded once
/// for all of them, and still each of them hears everything.
final class Topic {
  /// What makes two streams the same to the observers.
  struct Key: Hashable, Sendable {
    let object: Reference
    let keyPaths: [String]
    let options: ObservingOptions
    let context: EchoedText?
  }

  let key: Key
  let observer: ObserverID
  let channel: ChannelID
  let observations: [Observation]
  /// How many streams there are.
  var members = 0
  /// What those have missed whose readers are too slow.
  var lagging = LaggingMembers()
  /// The first event as it was encoded for the last revision at which somebody came.
  var initialEvent: (revision: Revision, bytes: [UInt8])?
  init(key: Key, observer: ObserverID, observations: [Observation]) {
    self.key = key
    self.observer = observer
    channel = ChannelID(observer.rawValue)
    self.observations = observations
  }
}

extension Topic.Key {
  /// The key of what a request asks for.
  init(_ request: StreamRegistry.TopicRequest, _ observations: [Observation]) {
    self.init(
      object: request.object, keyPaths: observations.map(\.keyPath.text), options: request.options,
      context: request.context)
  }
}

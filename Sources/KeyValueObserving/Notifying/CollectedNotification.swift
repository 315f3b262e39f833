import KeyValueModel

/// A notification, with what it takes to put it in its place and to take it back.
struct CollectedNotification {
  let id: ObserverIndex.TrackedID
  let change: Change
  var isRetracted = false
}

/// What a stream has been told when it is opened.
package enum StreamBeginning: Hashable, Sendable {
  /// Everything that was posted before: its heartbeats name the positions that are posted to the hub.
  case posted
  /// Everything that was posted to its channel, up to this position. The channel counts for itself, for what is posted
  /// to it comes later than the hub's positions: heartbeats of its streams name the position of the last event of
  /// theirs. Either all streams of a channel begin with `posted` or none does.
  case position(UInt64)
  /// Less: its channel counts for itself, and it lags from the beginning. Its owner is asked for what it misses, by
  /// `StreamHubDelegate.streamCaughtUp(_:)`, once the prelude is sent, without `streamLagged(_:firstMissed:)` before.
  case behind
}

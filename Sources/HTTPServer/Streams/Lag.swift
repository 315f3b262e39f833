/// Whether a stream misses events, and what its owner knows of it.
enum Lag {
  /// It gets every event.
  case none
  /// It gets none, and its owner has not been asked for a catch-up: there is still something to send.
  case behind
  /// Everything is sent, and the owner has been asked.
  case asked
}

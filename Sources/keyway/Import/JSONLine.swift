/// What imports and exports agree on.
enum JSONLine {
  /// The levels of JSON that are read: more than the server takes in a value, so that it is the server that refuses.
  static let depthLimit = 128
}

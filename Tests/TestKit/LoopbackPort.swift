/// Ports of the loopback address 127.0.0.1.
package enum LoopbackPort {
  /// A port that nothing listens on now. Another process may take it before the server does for which it is meant; that
  /// server then ends with an error of its own.
  package static func free() throws(LoopbackError) -> UInt16 { try LoopbackListener().port }
}

/// Hears of every request and stream that has ended. On the server's own threads: it must not wait.
package protocol AccessLog: AnyObject, Sendable {
  /// Whether records are wanted at present: where not, none is begun.
  var isWanted: Bool { get }

  /// Told once for each request that was begun, when its answer is sent or its client gone, and for one that was
  /// answered with a stream, when that has ended.
  func ended(_ record: AccessRecord)
}

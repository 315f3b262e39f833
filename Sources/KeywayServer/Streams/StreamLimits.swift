/// What streams may hold.
package struct StreamLimits: Sendable {
  /// The most cells of one stream. `streams.cells`.
  package var cells = 1000
  /// The most key paths of one stream or cell. `streams.keyPaths`.
  package var keyPaths = 64
  /// The most bytes of missed events that a stream which resumes is sent. `streams.replayBytes`.
  package var replayBytes = 16 * 1024 * 1024
  /// The most bytes of what one commit does to a stream, or a stream begins with. `streams.eventBytes`.
  package var eventBytes = 16 * 1024 * 1024
  /// The most bytes of long events that one batch of commits has for all streams with cells of one client; the others
  /// are then told later, as slow ones are.
  var batchBytes = 64 * 1024 * 1024
  /// The most bytes of missed events that are kept, besides those being sent, for the next who resume alike.
  /// `resume.bytes`.
  package var resumedBytes = 32 * 1024 * 1024
  /// The most streams that wait to be opened because their beginning takes work: those that resume, and live queries,
  /// each. `streams.opening`.
  package var opening = 12_000
  /// The same for one client address: less than all, so that one client never takes every place.
  /// `streams.openingPerAddress`.
  package var openingPerAddress = 10_500
  /// The threads that open the streams that wait, for each of the two sorts. One client has all but one of them at
  /// most, where there are several. `streams.openingThreads`.
  package var openingThreads = 2
  /// How long a stream with cells is kept for its client to come back once its connection was cut; 0 for not at all.
  /// `streams.resumeSeconds`.
  package var resumeSeconds = 60
  /// The most streams that are kept so. `streams.cut`.
  package var cut = 20_000
  /// The same of one client. `streams.cutPerAddress`.
  package var cutPerAddress = 10_500
  /// Seconds between heartbeats, named in `open`. `heartbeat.seconds`.
  package var heartbeatSeconds = 15

  /// The defaults.
  package init() {}
}

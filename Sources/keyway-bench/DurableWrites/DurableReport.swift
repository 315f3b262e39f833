/// The figures of a benchmark of durable writes, round by round.
struct DurableReport: BenchmarkReport {
  /// One measurement.
  struct Load: Hashable, Sendable {
    var perSecond = 0.0
    var latency = Latency()
    var cores = CPUTimes.Cores()
  }

  /// Which server was measured, with how many connections.
  struct Subject: Hashable, Sendable {
    var peer: WritePeer.Kind
    var connections: Int
  }

  /// What was measured one after the other.
  struct Round: Hashable, Sendable {
    var disk = DiskProbe()
    var writes: [Subject: Load] = [:]
    /// Reads of Keyway while nothing is written.
    var readsAlone: Load?
    /// Reads of Keyway while others write, and those writes.
    var readsWhileWriting: Load?
    var writesWhileReading: Load?

    /// Keyway's writes as a multiple of those of another; nil where one of them was not measured.
    func ratio(to peer: WritePeer.Kind, connections: Int) -> Double? {
      guard let ours = writes[Subject(peer: .keyway, connections: connections)],
        let theirs = writes[Subject(peer: peer, connections: connections)], theirs.perSecond > 0
      else { return nil }
      return ours.perSecond / theirs.perSecond
    }

    /// Reads while others write, as a part of those while nothing is written.
    var readRatio: Double? {
      guard let readsAlone, let readsWhileWriting, readsAlone.perSecond > 0 else { return nil }
      return readsWhileWriting.perSecond / readsAlone.perSecond
    }
  }

  var connections = 0
  var readers = 0
  var writers = 0
  /// The servers that are not installed.
  var skipped: [String] = []
  var rounds: [Round] = []
}

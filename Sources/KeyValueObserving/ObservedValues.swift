package import KeyValueModel

/// The values that observations see in one state, each worked out once for all that have the object, the key path and
/// the viewer in common, within a limit of steps.
///
/// They are worked out from a snapshot while others write, and brought to the present under the publication's lock:
/// that costs no more than a look at what was committed since.
package struct ObservedValues: Sendable {
  /// The objects that an evaluation reads.
  private final class Log {
    var objects: Set<Reference> = []
  }

  /// A state that notes which objects are read.
  private struct LoggingReader<Base: ObjectReader>: ObjectReader {
    let state: Base
    let meter: ReadingWork
    let log: Log

    var work: ReadingWork? { meter }

    func record(_ reference: Reference) -> ObjectRecord? {
      guard meter.spend() else { return nil }
      log.objects.insert(reference)
      return state.record(reference)
    }
  }

  /// So many steps may be taken while writers wait: about a millisecond.
  package static let stepsUnderLock = 20_000

  private let limit: Int
  /// The revision of the state that they are of; nil before the first evaluation.
  package private(set) var revision: Revision?
  private var known: [ValueKey: Value] = [:]
  /// Those that read one object for each key of their path and nothing else: cheaper to read again than to look after.
  private var cheap: [ValueKey] = []
  /// The objects that all others were read from.
  private var objects: Set<Reference> = []
  /// The number of evaluations. For tests.
  package private(set) var evaluationCount = 0

  /// No values yet. Each call of `evaluate` takes at most `limit` steps.
  package init(steps limit: Int) { self.limit = limit }

  /// Works out what observations see in a state of a revision, except what is known for it, and what is as quickly read
  /// as remembered: stored keys of the observed objects themselves. Throws `too-many-steps`; then the values are not to
  /// be used.
  package mutating func evaluate(
    _ observations: some Sequence<Observation>, in state: some ObjectReader, at revision: Revision
  ) throws(ModelError) {
    if revision != self.revision { (known, cheap, objects) = ([:], [], []) }
    self.revision = revision
    let meter = ReadingWork(steps: limit)
    for observation in observations where !observation.isPlain(in: state) {
      try evaluate(observation, in: state, meter)
    }
  }

  private mutating func evaluate(
    _ observation: Observation, in state: some ObjectReader, _ meter: ReadingWork
  ) throws(ModelError) {
    let key = ValueKey(observation)
    guard known[key] == nil else { return }
    // What is remembered of a guarded reading is that of one viewer.
    if observation.viewer != nil { meter.forget() }
    defer { if observation.viewer != nil { meter.forget() } }
    let before = meter.spentSteps
    let log = Log()
    evaluationCount += 1
    let value = observation.value(in: LoggingReader(state: state, meter: meter, log: log))
    meter.spend()
    try meter.check()
    known[key] = value
    let path = observation.keyPath
    if path.operation == nil, observation.viewer == nil, meter.spentSteps - before <= path.keys.count + 1 {
      cheap.append(key)
    } else {
      objects.formUnion(log.objects)
    }
  }

  /// The bytes of text of all values together.
  package var textBytes: Int { known.values.reduce(0) { $0 + $1.leastTextBytes } }

  /// True if none of the commits, which are those after the revision of the values, touched what costly values were
  /// read from. Then the values are those of `present`, and cheap ones are read again.
  package mutating func bringUp(through commits: [Commit]?, to present: Revision) -> Bool {
    guard revision != nil else { return false }
    if !objects.isEmpty {
      guard let commits else { return false }
      for commit in commits where commit.touchesObject(where: objects.contains) { return false }
    }
    if revision == present { return true }
    for key in cheap { known[key] = nil }
    cheap = []
    revision = present
    return true
  }

  /// A state of which these values are known.
  package func reader(of state: any ObjectReader) -> Reader { Reader(state: state, known: known) }

  /// A state of which the observed values need not be worked out any more.
  package struct Reader: ObjectReader {
    fileprivate let state: any ObjectReader
    fileprivate let known: [ValueKey: Value]

    /// The object of this name, nil if there is none.
    package func record(_ reference: Reference) -> ObjectRecord? { state.record(reference) }
  }
}

extension Observation {
  /// The observed value as `reader` has it, which may know it already.
  func knownValue(in reader: some ObjectReader) -> Value {
    (reader as? ObservedValues.Reader)?.known[ValueKey(self)] ?? value(in: reader)
  }

  /// True if the value is that of a stored key of the object itself.
  package func isPlain(in reader: some ObjectReader) -> Bool {
    guard viewer == nil, keyPath.operation == nil, keyPath.keys.count == 1 else { return false }
    return reader.record(object).map { $0.entity.keys[keyPath.keys[0]].storage != nil } ?? true
  }

  /// The same observation of which only is told that something changed: no value has to be worked out for that.
  package var withoutValues: Observation {
    Observation(object: object, keyPath: keyPath, options: [], context: context, viewer: viewer)
  }
}

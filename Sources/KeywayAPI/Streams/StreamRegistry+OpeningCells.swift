package import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Opening streams with cells.
extension StreamRegistry {
  /// What a stream with cells begins with, worked out before anything is registered.
  private struct Beginning {
    var cells: [(name: String, binding: CellBinding, observations: [Observation])] = []
    var resumption: Resumption
    var replayed: [ObserverEvent] = []
    /// What the client has: the state before what is replayed.
    var past: PastState

    /// Whether the cells are told the present state, rather than what they missed.
    var tellsPresent: Bool { if case .after = resumption { false } else { true } }
    /// Whether they are told it although they did not ask for it.
    var isReset: Bool { if case .reset = resumption { true } else { false } }
  }

  /// Opens a stream with these cells. Where `cursor` can be resumed, the cells on screen are told what they missed;
  /// otherwise all are told the present state. Throws what is wrong with a binding before anything is registered.
  package func openCells(
    _ bindings: [String: Value], cursor: String?, _ publication: inout Publication
  ) throws(Problem) -> EventStream {
    try contents.withLock { contents throws(Problem) in
      let beginning = try beginning(of: try parse(bindings), cursor: cursor, publication)
      let observer = contents.makeObserver()
      let name = StreamName(observer: observer, secret: (random(), random())).text
      let stream = CellStream(name: name, observer: observer)
      let prelude = begin(stream, beginning, &publication)
      let opened: EventStream
      do throws(Problem) {
        opened = try openStream(prelude, nil)
      } catch {
        publication.observers.remove(observer)
        throw error
      }
      stream.id = opened.id
      contents.cellStreams[observer] = stream
      contents.streams[opened.id] = .cells(stream)
      return opened
    }
  }

  private func beginning(
    of parsed: [(String, CellBinding)], cursor: String?, _ publication: borrowing Publication
  ) throws(Problem) -> Beginning {
    let state = publication.snapshot.state
    var beginning = Beginning(
      resumption: Resumption(
        cursor: cursor, epoch: encoder.epoch, oldest: publication.snapshot.oldestResumable,
        present: publication.snapshot.revision),
      past: PastState(before: EmptyCollection(), of: state))
    for (name, binding) in parsed {
      // An object that was there at the cursor may be gone by now: its cell is told so.
      let mayBeGone = !beginning.tellsPresent
      beginning.cells.append((name, binding, try observations(binding, state, mayBeGone: mayBeGone)))
    }
    guard case .after(let revision) = beginning.resumption else { return beginning }
    var size = 0
    let cells = beginning.cells.filter { !$0.observations.isEmpty }
      .map { (name: Optional($0.name), observations: $0.observations) }
    let absent = publication.replay(cells, after: revision) { event in
      if event.isOverflown { size = .max }
      guard size <= limits.replayBytes else { return }
      var bytes: [UInt8] = []
      encoder.append(event, to: &bytes)
      size += bytes.count
      beginning.replayed.append(event)
    }
    guard absent?.isEmpty == true, size <= limits.replayBytes else {
      beginning.resumption = .reset(absent?.isEmpty == true ? .overflow : .compacted)
      beginning.replayed = []
      for cell in beginning.cells { _ = try observations(cell.binding, state) }
      return beginning
    }
    if !beginning.replayed.isEmpty, beginning.cells.contains(where: { !$0.binding.isVisible }),
      let past = publication.past(after: revision)
    {
      beginning.past = past
    }
    return beginning
  }

  /// Registers the cells and gives the bytes that the stream begins with.
  private func begin(
    _ stream: CellStream, _ beginning: Beginning, _ publication: inout Publication
  ) -> [UInt8] {
    let present = publication.snapshot.revision
    for cell in beginning.cells {
      let isHidden = !cell.binding.isVisible
      stream.cells[cell.name] = Cell(
        binding: cell.binding, pending: isHidden ? PendingChanges(cell.observations, in: beginning.past) : nil)
    }
    var prelude = opening(stream, present)
    if case .reset(let reason) = beginning.resumption {
      encoder.appendReset(reason, revision: present, to: &prelude)
    }
    for event in beginning.replayed {
      if let told = stream.sift(event) { encoder.append(told, to: &prelude) }
    }
    var initial: [Change] = []
    for cell in beginning.cells where stream.cells[cell.name]?.binding.object != nil {
      initial += register(
        cell.name, cell.observations, of: stream, tellsInitial: beginning.tellsPresent, isForced: beginning.isReset,
        &publication)
    }
    appendInitial(initial, stream, present, to: &prelude)
    return prelude
  }

  private func opening(_ stream: CellStream, _ revision: Revision) -> [UInt8] {
    var bytes = Array(retryLine.utf8)
    encoder.append("open", id: nil, to: &bytes) { bytes in
      let data: JSONObject = [
        "stream": .string(stream.name), "revision": .integer(Int64(revision)),
        "heartbeat": .integer(Int64(limits.heartbeatSeconds)),
      ]
      data.appendJSON(to: &bytes)
    }
    return bytes
  }

  private func appendInitial(
    _ changes: [Change], _ stream: CellStream, _ revision: Revision, to bytes: inout [UInt8]
  ) {
    guard !changes.isEmpty else { return }
    encoder.appendChange(changes, revision: revision, isInitial: true, to: &bytes)
    for name in Set(changes.map { $0.cell ?? "" }) { stream.cells[name]?.told += 1 }
  }

  func parse(_ bindings: [String: Value]) throws(Problem) -> [(String, CellBinding)] {
    guard bindings.count <= limits.cells else {
      throw Problem(.tooManyCells, "\(bindings.count) cells; a stream has at most \(limits.cells)")
    }
    var parsed: [(String, CellBinding)] = []
    for (name, body) in bindings.sorted(by: { $0.key < $1.key }) {
      try Self.check(cellName: name)
      parsed.append((name, try CellBinding(body)))
    }
    return parsed
  }

  private static func check(cellName name: String) throws(Problem) {
    guard Reference(entity: "cell", id: name) != nil else {
      throw Problem(.invalidValue, "a cell's name is 1 to 128 letters, digits and . _ ~ -, and '\(name)' is not")
    }
  }

  /// The observations of a binding; with `mayBeGone` its object need not be there any more.
  func observations(
    _ binding: CellBinding, _ state: ModelState, mayBeGone: Bool = false
  ) throws(Problem) -> [Observation] {
    guard let object = binding.object else { return [] }
    if !mayBeGone { try Problem.translating { () throws(ModelError) in _ = try state.requireRecord(object) } }
    return try observations(
      object, binding.keyPaths, options: binding.options, context: binding.context, state.schema)
  }

  /// Begins a cell's observations and gives the changes of its first notification, if it gets one now.
  func register(
    _ name: String, _ observations: [Observation], of stream: CellStream, tellsInitial: Bool, isForced: Bool = false,
    _ publication: inout Publication
  ) -> [Change] {
    guard var cell = stream.cells[name] else { return [] }
    defer { stream.cells[name] = cell }
    cell.observations = observations
    publication.observers.add(observations, of: stream.observer, cell: name, in: publication.snapshot.state)
    let wantsInitial = isForced || cell.binding.options.contains(.initial)
    guard cell.binding.isVisible, !stream.isSuspended else {
      cell.pause(in: publication.snapshot.state)
      cell.isOwedInitial = tellsInitial && wantsInitial && !observations.isEmpty
      return []
    }
    guard tellsInitial, wantsInitial else { return [] }
    return observations.map { $0.initialChange(cell: name, in: publication.snapshot.state) }
  }
}

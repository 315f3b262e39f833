internal import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking
package import ModelStore

/// Binding the cells of open streams.
extension StreamRegistry {
  /// Binds cells of an open stream to what the bodies say, and, with `replacingAll`, ends its other cells: all or nothing.
  /// Gives the cells as they are now.
  package func bind(
    _ bindings: [String: Value], in name: String, replacingAll: Bool = false, _ publication: inout Publication
  ) throws(Problem) -> [String: JSONObject] {
    let parsed = try parse(bindings)
    return try update(name, &publication) { stream, publication throws(Problem) in
      let names = replacingAll ? Set() : Set(stream.cells.keys)
      guard names.union(parsed.map(\.0)).count <= limits.cells else {
        throw Problem(.tooManyCells, "a stream has at most \(limits.cells) cells")
      }
      var prepared: [(String, CellBinding, [Observation])] = []
      for (cell, binding) in parsed {
        prepared.append((cell, binding, try observations(binding, publication.snapshot.state)))
      }
      if replacingAll {
        let kept = Set(parsed.map(\.0))
        for cell in stream.cells.keys where !kept.contains(cell) { end(cell, of: stream, &publication) }
      }
      var news = CellNews()
      for (cell, binding, observations) in prepared {
        rebind(cell, to: binding, observations, of: stream, &publication, &news)
      }
      return (news, Dictionary(uniqueKeysWithValues: parsed.map { ($0.0, describe($0.0, of: stream)) }))
    }
  }

  /// Changes what a body names of one cell's binding.
  package func patch(
    _ cell: String, in name: String, _ body: Value, _ publication: inout Publication
  ) throws(Problem) -> JSONObject {
    try update(name, &publication) { stream, publication throws(Problem) in
      guard var binding = stream.cells[cell]?.binding else { throw Self.unknownCell(cell) }
      try binding.apply(body)
      var news = CellNews()
      // A cell that only comes into view may have lost its object meanwhile: it is told so.
      let isSameObject = binding.object == stream.cells[cell]?.binding.object
      let isGone = isSameObject && stream.cells[cell]?.pending?.gone != nil
      let observations = isGone ? [] : try observations(binding, publication.snapshot.state)
      rebind(cell, to: binding, observations, of: stream, &publication, &news)
      return (news, describe(cell, of: stream))
    }
  }

  /// Ends the old observations before it starts the new; the same binding again does nothing.
  private func rebind(
    _ name: String, to binding: CellBinding, _ observations: [Observation], of stream: CellStream,
    _ publication: inout Publication, _ news: inout CellNews
  ) {
    if let present = stream.cells[name] {
      var withPresentVisibility = binding
      withPresentVisibility.isVisible = present.binding.isVisible
      if withPresentVisibility == present.binding {
        return setVisibility(binding.isVisible, name, of: stream, publication, &news)
      }
    }
    // What an invisible cell has not been told is not lost when only its options or its context change: it is told the
    // state instead.
    let former = stream.cells[name]
    let isOwed = former?.isOwedInitial == true || former?.pending?.commits ?? 0 > 0
    publication.observers.remove(stream.observer, cell: name)
    stream.cells[name] = Cell(binding: binding, told: former?.told ?? 0)
    news.initial += register(
      name, observations, of: stream, tellsInitial: true,
      isForced: isOwed && former?.binding.object == binding.object, &publication)
  }

  /// A cell leaves the screen, or comes back and is told in one change what it missed; a suspended stream is told that
  /// later, with the rest.
  private func setVisibility(
    _ isVisible: Bool, _ name: String, of stream: CellStream, _ publication: borrowing Publication,
    _ news: inout CellNews
  ) {
    guard var cell = stream.cells[name], cell.binding.isVisible != isVisible else { return }
    defer { stream.cells[name] = cell }
    cell.binding.isVisible = isVisible
    if !isVisible {
      cell.pause(in: publication.snapshot.state)
    } else if !stream.isSuspended {
      cell.resume(as: name, in: publication.snapshot.state, &news)
    }
  }

  private func describe(_ cell: String, of stream: CellStream) -> JSONObject {
    stream.cells[cell]?.described(as: cell) ?? [:]
  }

  private func end(_ cell: String, of stream: CellStream, _ publication: inout Publication) {
    publication.observers.remove(stream.observer, cell: cell)
    stream.cells[cell] = nil
  }

  /// Runs `body` on a stream and tells the stream what comes of it, as one revision: only the last event has an id.
  private func update<Result>(
    _ name: String, _ publication: inout Publication,
    _ body: (CellStream, inout Publication) throws(Problem) -> (CellNews, Result)
  ) throws(Problem) -> Result {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      let (news, result) = try body(stream, &publication)
      let bytes = encoded(news, of: stream, publication.snapshot.revision)
      if !bytes.isEmpty, let id = stream.id { hub.post([.stream(id, EventBytes(bytes))], position: nil) }
      return result
    }
  }

  /// The events that tell a stream's cells their news, counted as told; nothing where there are none.
  func encoded(_ news: CellNews, of stream: CellStream, _ revision: Revision) -> [UInt8] {
    var bytes: [UInt8] = []
    if !news.initial.isEmpty {
      let isLast = news.coalesced.isEmpty && news.gone.isEmpty
      encoder.appendChange(news.initial, revision: revision, isInitial: true, hasID: isLast, to: &bytes)
      for cell in Set(news.initial.map { $0.cell ?? "" }) { stream.cells[cell]?.told += 1 }
    }
    let rest = ObserverEvent(
      observer: stream.observer, revision: revision, writer: nil, changes: news.coalesced, gone: news.gone)
    encoder.append(rest, to: &bytes)
    stream.count(rest)
    return bytes
  }
}

/// Inspecting and ending cells.
extension StreamRegistry {
  /// One cell, or all where `cell` is nil.
  package func describeCells(_ name: String, cell: String? = nil) throws(Problem) -> JSONObject {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      if let cell {
        guard let found = stream.cells[cell] else { throw Self.unknownCell(cell) }
        return found.described(as: cell)
      }
      var cells = JSONObject()
      for (name, cell) in stream.cells.sorted(by: { $0.key < $1.key }) {
        cells[name] = .object(cell.described(as: name))
      }
      return ["cells": .object(cells)]
    }
  }

  /// Ends one cell, or all where `cell` is nil.
  package func endCells(
    _ name: String, cell: String? = nil, _ publication: inout Publication
  ) throws(Problem) {
    try contents.withLock { contents throws(Problem) in
      let stream = try cellStream(name, contents)
      if let cell, stream.cells[cell] == nil { throw Self.unknownCell(cell) }
      for name in cell.map({ [$0] }) ?? Array(stream.cells.keys) { end(name, of: stream, &publication) }
    }
  }

  private static func unknownCell(_ cell: String) -> Problem {
    Problem(.unknownCell, "the stream has no cell '\(cell)'")
  }

  private func cellStream(_ name: String, _ contents: borrowing Contents) throws(Problem) -> CellStream {
    guard let parsed = StreamName(name), let stream = contents.cellStreams[parsed.observer], stream.name == name else {
      throw Problem(.unknownStream, "no stream with cells is open under this name")
    }
    return stream
  }
}

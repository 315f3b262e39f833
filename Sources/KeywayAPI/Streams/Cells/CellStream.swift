import HTTPServer
import KeyValueModel
import KeyValueObserving
import ModelStore

/// A stream with cells: one observer whose observations come and go.
final class CellStream: CommitReceiver {
  let id: StreamID
  /// Who reads it.
  let client: ClientAddress
  let observer: ObserverID
  let services: StreamServices
  var cells: CellSet

  init(
    id: StreamID, client: ClientAddress, observer: ObserverID, cells: CellSet = CellSet(), services: StreamServices
  ) {
    self.id = id
    self.client = client
    self.observer = observer
    self.cells = cells
    self.services = services
  }

  var observationCount: Int { cells.observationCount }
  var cellCount: Int { cells.count }
  var queries: [Query] { cells.byName.values.compactMap(\.query) }

  func context(ofCell cell: String?) -> String? { cell.flatMap { cells[$0]?.binding.context?.text } }

  func delivery(of event: StreamEvent, _ contents: inout StreamRegistry.Contents) -> Delivery? {
    guard let visible = cells.visiblePart(of: event) else { return nil }
    services.countNotifications(visible.changes.count + visible.queries.count)
    guard let bytes = services.encoder.bytes(of: visible) else { return miss(.commit(event.revision)) }
    return .stream(id, bytes)
  }

  /// Has the stream begin to lag at a position.
  func miss(_ position: StreamPosition) -> Delivery { .streamMisses(id, position: position.rawValue) }

  func missed(_ revision: Revision) -> Delivery {
    cells.forgetMissed()
    return miss(.commit(revision))
  }

  func overflow(_ contents: inout StreamRegistry.Contents) -> Delivery? {
    .endStream(id, services.encoder.closingEvent(.overflow))
  }

  func end(_ id: StreamID, _ contents: inout StreamRegistry.Contents, _ publication: inout Publication) {
    unregister(&publication)
    contents.receivers[observer] = nil
  }

  /// Ends what all cells observe and watch.
  func unregister(_ publication: inout Publication) {
    publication.observers.remove(observer)
    publication.queries.remove(observer)
    publication.queries.discharge(observer, of: QueryPayer(client))
  }

  // MARK: Describing

  func describe(in body: inout JSONObject) {
    body["kind"] = .string("cells")
    body["count"] = .integer(Int64(cells.count))
    body["observations"] = .integer(Int64(observationCount))
  }

  func describeDetails(in body: inout JSONObject) { body["cells"] = .object(describeCells(cells.sorted.map(\.key))) }

  /// The cells of these names as `GET` shows them, in the order given.
  func describeCells(_ names: [String]) -> JSONObject {
    var body = JSONObject()
    for name in names { body[name] = cells[name].map { .object($0.described(as: name)) } }
    return body
  }

  /// One cell as `GET` shows it. Throws `unknown-cell`.
  func describeCell(_ name: String) throws(Problem) -> JSONObject { try require(name).described(as: name) }

  /// A cell. Throws `unknown-cell`.
  func require(_ name: String) throws(Problem) -> Cell {
    guard let cell = cells[name] else { throw Problem(.unknownCell, "the stream has no cell '\(name)'") }
    return cell
  }
}

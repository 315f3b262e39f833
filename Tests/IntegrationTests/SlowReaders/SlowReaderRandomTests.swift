import KeyValueModel
import KeywayClient
import TestKit
import Testing

@Suite("Readers that are slow now and then", .serialized)
struct SlowReaderRandomTests {
  private static let objects = [
    "value": "Group/1/pad", "several": "Group/1/items,tags,pad", "whole": "Group/1",
    "aggregates": "Group/1/items.@sum.n,items.@count,total,pad",
  ]
  private static let queries = [
    "query": "filter=n%3C12&sort=n,name&keys=name,n,kind,pad",
    "section": "sort=n&section=kind&limit=6&keys=name,n,kind,pad",
  ]
  private static let cells = """
    {"cells":{
      "g":{"object":"Group/1","keyPaths":["items","pad"],"options":["old","new","initial"]},
      "h":{"object":"Item/keep","keyPaths":["n","pad"],"options":["old","new","initial"],"visible":false},
      "o":{"object":"Item/keep","keyPaths":["name","n","kind"],"options":["old","new","initial"]},
      "q":{"entity":"Item","filter":"n < 12","sort":"n,name","keys":["name","n","kind","pad"]},
      "r":{"entity":"Item","filter":"n < 5","sort":"n","keys":["n"],"visible":false}}}
    """

  @Test(
    "show what GET shows whenever they have come to the present, and are told of as much as others", arguments: 0..<3)
  func everything(round: UInt64) throws {
    let world = try SlowReaderWorld(seed: seed &+ round)
    var streams: [ObservedStream] = []
    for (name, path) in Self.objects.sorted(by: { $0.key < $1.key }) {
      streams.append(try ObservedStream(name, world.client, "/v1/objects/\(path)?options=old,new,initial"))
    }
    for (name, query) in Self.queries.sorted(by: { $0.key < $1.key }) {
      streams.append(try ObservedStream(name, world.client, "/v1/objects/Item?\(query)"))
    }
    let cells = try ObservedStream("cells", world.client, "/v1/streams", body: Self.cells)
    streams.append(cells)
    for _ in 0..<150 {
      switch Int.random(in: 0..<10, using: &world.random) {
      case 0..<5: try world.commit()
      case 5, 6: try world.flood()
      case 7: try changeCells(of: cells, world)
      default:
        guard let stream = streams.randomElement(using: &world.random) else { continue }
        let mark = try world.mark()
        if Bool.random(using: &world.random) {
          try stream.read(to: mark)
          try compare(stream, at: mark, world)
        } else {
          try stream.read(to: mark, atMost: 2)
        }
      }
    }
    let mark = try world.mark()
    for stream in streams {
      try stream.read(to: mark)
      try compare(stream, at: mark, world)
    }
    #expect(streams.contains { $0.slow.merged > 0 }, "nobody was slow; seed \(seed)")
  }

  /// Binds, hides or shows a cell of both streams.
  private func changeCells(of cells: ObservedStream, _ world: SlowReaderWorld) throws {
    let isVisible = Bool.random(using: &world.random)
    let limit = Int.random(in: 0..<20, using: &world.random)
    let (method, cell, body) =
      switch Int.random(in: 0..<6, using: &world.random) {
      case 0: ("PATCH", "h", #"{"visible":\#(isVisible)}"#)
      case 1: ("PATCH", "o", #"{"visible":\#(isVisible)}"#)
      case 2: ("PATCH", "r", #"{"visible":\#(isVisible)}"#)
      case 3: ("PATCH", "r", #"{"filter":"n < \#(limit)"}"#)
      case 4: ("PATCH", "o", #"{"object":null}"#)
      default: ("PATCH", "o", #"{"object":"\#(world.someItem)"}"#)
      }
    for stream in cells.streams { try world.client.must(method, "/v1/streams/\(stream)/cells/\(cell)", body: body) }
  }

  // MARK: Comparing

  private func compare(_ stream: ObservedStream, at revision: Int, _ world: SlowReaderWorld) throws {
    let (slow, twin) = (stream.slow, stream.twin(at: revision))
    let note = Comment(rawValue: "\(stream.name) at \(revision), seed \(seed)")
    #expect(slow.mistakes == [], note)
    #expect(twin.mistakes == [], note)
    if let path = Self.objects[stream.name] {
      let keyPaths =
        path.split(separator: "/").dropFirst(2).first.map { $0.split(separator: ",").map(String.init) }
        ?? ["name", "total", "pad"]
      for keyPath in keyPaths { try compare(slow, nil, "Group/1", keyPath, world, note) }
    } else if let query = Self.queries[stream.name] {
      let fetch = query.replacing("sort=n&section=kind", with: "sort=kind,n")
      try compare(slow, nil, fetch, ["name", "n", "kind", "pad"], world, note)
    } else {
      try compareCells(stream, slow, world, note)
    }
    // The cells that are never hidden or bound again.
    let counted: [String?] = [nil, "g", "q"]
    for cell in counted where !slow.renewed.contains(cell) && !twin.renewed.contains(cell) {
      #expect(slow.contents[cell] == twin.contents[cell], note)
      for (place, count) in twin.changes where place.cell == cell {
        #expect(slow.changes[place] == count, "\(place) \(note)")
      }
    }
  }

  private func compareCells(
    _ stream: ObservedStream, _ slow: ShownState, _ world: SlowReaderWorld, _ note: Comment
  ) throws {
    let cells = try world.client.json("/v1/streams/\(stream.streams[0])/cells")["cells"]
    for name in cells.names where cells[name]["visible"] == .bool(true) {
      let cell = cells[name]
      #expect(cell["pending"].whole == 0, note)
      if let object = cell["object"].text {
        for keyPath in cell["keyPaths"].items.compactMap(\.text) {
          try compare(slow, name, object, keyPath, world, note)
        }
      } else if cell["entity"].text != nil {
        let keys = cell["keys"].items.compactMap(\.text)
        let filter = (cell["filter"].text ?? "").replacing(" ", with: "%20").replacing("<", with: "%3C")
        let fetch = "filter=\(filter)&sort=\(cell["sort"].text ?? "")&keys=\(keys.joined(separator: ","))"
        try compare(slow, name, fetch, keys, world, note)
      }
    }
  }

  private func compare(
    _ slow: ShownState, _ cell: String?, _ object: String, _ keyPath: String, _ world: SlowReaderWorld, _ note: Comment
  ) throws {
    let shown = slow.values[.init(cell: cell, object: object, keyPath: keyPath)]
    let value = try world.client.json("/v1/objects/\(object)/\(keyPath)")
    let isSet = keyPath == "tags"
    #expect(
      isSet ? Set(shown?.items ?? []) == Set(value.items) : shown == value,
      "\(cell ?? "") \(object) \(keyPath) \(note)")
  }

  private func compare(
    _ slow: ShownState, _ cell: String?, _ fetch: String, _ keys: [String], _ world: SlowReaderWorld, _ note: Comment
  ) throws {
    let rows = slow.lists[cell]?.rows ?? []
    let objects = try world.client.json("/v1/objects/Item?\(fetch)")["objects"].items
    #expect(rows.map(\.reference.text) == objects.map { $0["@ref"].text ?? "" }, "\(cell ?? "") \(note)")
    for (row, object) in zip(rows, objects) {
      for key in keys { #expect(row.value[key] == object[key], "\(row.reference) \(key) \(note)") }
    }
  }
}

package import HTTPServer
package import KeyValueModel
internal import KeyValueObserving
internal import Locking

/// Listing, inspecting and ending streams, whatever they are.
extension StreamRegistry {
  /// Every open stream, without its cells.
  package func describeStreams() -> JSONObject {
    contents.withLock { contents in
      let streams = contents.streams.sorted { $0.key.number < $1.key.number }
      return ["streams": .array(streams.map { .object(describe($0.key, $0.value)) })]
    }
  }

  /// One stream, with its cells where it has any.
  package func describeStream(_ name: String) throws(Problem) -> JSONObject {
    try contents.withLock { contents throws(Problem) in
      let (id, member) = try find(name, contents)
      var body = describe(id, member)
      if case .cells(let stream) = member {
        var cells = JSONObject()
        for (name, cell) in stream.cells.sorted(by: { $0.key < $1.key }) {
          cells[name] = .object(cell.described(as: name))
        }
        body["cells"] = .object(cells)
      }
      return body
    }
  }

  /// Ends a stream: it is told `bye` with the reason `expired`.
  package func endStream(_ name: String) throws(Problem) {
    let id = try contents.withLock { contents throws(Problem) in try find(name, contents).0 }
    hub.post([.endStream(id, farewell("expired"))], position: nil)
  }

  /// A `bye` event.
  package func farewell(_ reason: String) -> EventBytes { encoder.farewell(reason) }

  /// A `heartbeat` event.
  package func heartbeat(at revision: Revision) -> EventBytes {
    var bytes: [UInt8] = []
    encoder.appendHeartbeat(at: revision, to: &bytes)
    return EventBytes(bytes)
  }

  private func find(_ name: String, _ contents: borrowing Contents) throws(Problem) -> (StreamID, Member) {
    if let parsed = StreamName(name), let stream = contents.cellStreams[parsed.observer], let id = stream.id,
      stream.name == name
    {
      return (id, .cells(stream))
    }
    if let dash = name.firstIndex(of: "-"), let number = UInt64(name[..<dash], radix: 36) {
      let id = StreamID(number)
      if let member = contents.streams[id], self.name(of: id, member) == name { return (id, member) }
    }
    throw Problem(.unknownStream, "no stream is open under this name")
  }

  private func name(of id: StreamID, _ member: Member) -> String {
    switch member {
    case .cells(let stream): stream.name
    case .topic(_, let secret), .query(_, let secret), .over(_, let secret), .journal(let secret):
      "\(String(id.number, radix: 36))-\(String(secret, radix: 16))"
    }
  }

  private func describe(_ id: StreamID, _ member: Member) -> JSONObject {
    var body: JSONObject = ["stream": .string(name(of: id, member))]
    switch member {
    case .cells(let stream):
      body["kind"] = .string("cells")
      body["count"] = .integer(Int64(stream.cells.count))
      body["observations"] = .integer(Int64(stream.observationCount))
    case .topic(let topic, _): describe(topic.key, observations: topic.observations.count, in: &body)
    case .query(let topic, _): describe(topic.key, in: &body)
    case .over(let key, _): describe(key, observations: 0, in: &body)
    case .journal:
      body["kind"] = .string("journal")
      body["observations"] = .integer(0)
    }
    return body
  }

  private func describe(_ key: QueryTopic.Key, in body: inout JSONObject) {
    let words = key.query.words
    body["kind"] = .string("query")
    body["entity"] = .string(words.entity)
    body["filter"] = words.filter.map(Value.string) ?? .null
    body["sort"] = words.sort.map(Value.string) ?? .null
    body["section"] = words.section.map(Value.string) ?? .null
    body["limit"] = words.limit.map { .integer(Int64($0)) } ?? .null
    body["keys"] = words.keys.map { .array($0.map(Value.string)) } ?? .null
    body["context"] = key.context.map { .string($0.text) } ?? .null
    body["observations"] = .integer(1)
  }

  private func describe(_ key: Topic.Key, observations: Int, in body: inout JSONObject) {
    body["kind"] = .string("object")
    body["object"] = .reference(key.object)
    body["keyPaths"] = .array(key.keyPaths.map(Value.string))
    body["options"] = .array(key.options.optionNames.map(Value.string))
    body["context"] = key.context.map { .string($0.text) } ?? .null
    body["observations"] = .integer(Int64(observations))
  }
}

/// What another node answers.
struct NodeAnswer: Sendable {
  let status: Int
  /// In the order in which they came.
  let fields: [(name: String, value: String)]
  var body: [UInt8] = []

  /// The value of a field, whatever the case of its name; nil where there is none.
  subscript(name: String) -> String? {
    let name = name.lowercased()
    return fields.first { $0.name.lowercased() == name }?.value
  }

  /// True for a stream of server-sent events.
  var isEventStream: Bool { self["Content-Type"]?.hasPrefix("text/event-stream") == true }
}

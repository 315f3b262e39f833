import KeyValueModel

/// One object of a file of JSON lines, taken apart by the schema.
struct ObjectLine: Hashable, Sendable {
  /// The line, from 1.
  var line: Int
  var bytes = 0
  var reference: Reference
  /// The texts that the id is made of; none where the line has its reference.
  var idParts: [String] = []
  /// The keys with values, and the relationships that name no object.
  var values = JSONObject()
  /// The keys with any JSON value.
  var documents = JSONObject()
  /// The relationships that name objects.
  var links: [ImportLink] = []
  /// How many seconds the object is to last; nil where the line says nothing of it.
  var lifetime: Int64?
  /// Whether the object is there and is to be replaced.
  var replaces = false

  /// What it takes of a transaction, estimated from above: its own bytes, and an operation for each link.
  var weight: Int {
    links.reduce(bytes + 64) { $0 + 96 + reference.text.utf8.count + $1.targets.count * 2 + $1.key.utf8.count }
  }
}

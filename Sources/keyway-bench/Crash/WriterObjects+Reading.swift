import KeyValueModel
import TestKit

/// What the server says a writer's objects are.
extension WriterObjects {
  /// Reads all of a writer's objects, which are not written meanwhile. Throws where they contradict each other.
  static func read(writer: Int, over connection: WireConnection) throws -> WriterObjects {
    var objects = WriterObjects(writer: writer)
    func get(_ path: String) throws -> Value { try connection.must(WireRequest("GET", path)).json }
    func object(_ reference: String) throws -> Value {
      let object = try get("/v1/objects/\(reference)")
      objects.revisions[reference] = object["@revision"].whole
      return object
    }
    for index in objects.counters.indices {
      objects.counters[index] = try object(objects.counter(index))["value"].whole ?? -1
    }
    let halves = try [object(objects.leftHalf), object(objects.rightHalf)]
    objects.left = halves[0]["value"].whole ?? -1
    objects.right = halves[1]["value"].whole ?? -1
    objects.sequence = halves[0]["sequence"].whole ?? -1
    guard halves[1]["sequence"].whole == objects.sequence, objects.left + objects.right == sum else {
      throw LoopbackError("half a transaction: \(halves[0].json) and \(halves[1].json)")
    }
    let total = try get("/v1/objects/\(objects.group)/total")
    guard total.whole == objects.total else {
      throw LoopbackError("\(objects.group)/total is \(total.json), of counters \(objects.counters)")
    }
    let items = try get("/v1/objects/Item?filter=writer==\(writer)&sort=number&limit=1000")
    for item in items["objects"].items {
      let member = Member(reference: item["@ref"].text, number: item["number"].whole ?? -1)
      objects.items.append(member)
      objects.revisions[member.reference ?? ""] = item["@revision"].whole
    }
    let entries = try object(objects.list)["entries"].items
    let numbers = try get("/v1/objects/\(objects.list)/entries.number").items
    guard entries.count == numbers.count else {
      throw LoopbackError("\(objects.list) has \(entries.count) entries and \(numbers.count) numbers of them")
    }
    objects.entries = zip(entries, numbers).map { Member(reference: $0.text, number: $1.whole ?? -1) }
    return objects
  }

  /// Where this, which was read, is another than what is known; nil where it is the same. Names that are not known are
  /// taken as they come.
  func difference(from known: WriterObjects) -> String? {
    func same(_ read: [Member], _ known: [Member]) -> Bool {
      read.count == known.count
        && zip(read, known).allSatisfy {
          $0.number == $1.number && ($1.reference == nil || $0.reference == $1.reference)
        }
    }
    if counters != known.counters { return "counters are \(counters), not \(known.counters)" }
    if [left, right, sequence] != [known.left, known.right, known.sequence] {
      return "halves are \([left, right, sequence]), not \([known.left, known.right, known.sequence])"
    }
    if !same(items, known.items) { return "items are \(Self.text(items)), not \(Self.text(known.items))" }
    if !same(entries, known.entries) { return "entries are \(Self.text(entries)), not \(Self.text(known.entries))" }
    return nil
  }

  private static func text(_ members: [Member]) -> String {
    "[" + members.map { "\($0.number) \($0.reference ?? "?")" }.joined(separator: ", ") + "]"
  }
}

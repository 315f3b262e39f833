import KeyValueModel
import TestKit

/// The state of one writer's objects, as far as the writer knows; no other client writes them.
struct WriterObjects: Hashable, Sendable {
  fileprivate static let counterCount = 3
  fileprivate static let maximumItems = 12
  fileprivate static let maximumEntries = 12
  /// The constant sum of the two halves.
  static let sum = 1000

  /// An item or an entry.
  struct Member: Hashable, Sendable {
    /// The reference, `Item/…`; nil while the name that the server made is not known.
    var reference: String?
    /// The number, which is unique within its kind.
    var number: Int
  }

  /// The number of the writer.
  let writer: Int
  var counters = [Int](repeating: 0, count: counterCount)
  var left = sum
  var right = 0
  /// The number of transfers so far.
  var sequence = 0
  /// The items, in the order of their numbers.
  var items: [Member] = []
  /// The entries, in the order of the list.
  var entries: [Member] = []
  /// The numbers of the next item and the next entry.
  private var nextItem = 1
  private var nextEntry = 1
  /// The revision of the last write of each object, by reference.
  var revisions: [String: Int] = [:]

  init(writer: Int) { self.writer = writer }

  /// The names of the writer's objects.
  func counter(_ index: Int) -> String { "Counter/\(writer)-\(index)" }
  var leftHalf: String { "Half/\(writer)-left" }
  var rightHalf: String { "Half/\(writer)-right" }
  var list: String { "List/\(writer)" }
  var group: String { "Group/\(writer)" }
  var name: String { "writer-\(writer)" }
  private func item(_ number: Int) -> String { "Item/\(writer)-\(number)" }

  /// The number of objects: the group, the list, the halves, the counters, the items and the entries.
  var objectCount: Int { 4 + counters.count + items.count + entries.count }

  /// The sum of the counters.
  var total: Int { counters.reduce(0, +) }

  /// Returns the objects after a step. Names that the server makes are not known yet.
  func after(_ step: WriteStep) -> WriterObjects {
    var objects = self
    switch step {
    case .count(let index): objects.counters[index] += 1
    case .transfer(let amount): objects.transfer(amount)
    case .create(let isNamed): objects.create(isNamed: isNamed)
    case .delete(let index): objects.items.remove(at: index)
    case .insert(let count, let index):
      for offset in 0..<count { objects.insert(at: index + offset) }
    case .remove(let index): objects.entries.remove(at: index)
    case .all(let counter, let amount):
      objects.counters[counter] += 1
      objects.transfer(amount)
      if !objects.items.isEmpty { objects.items.removeFirst() }
      objects.create(isNamed: false)
      objects.insert(at: 0)
      if objects.entries.count > Self.maximumEntries { objects.entries.removeLast() }
    }
    return objects
  }

  /// Returns the objects with an `@revision` of their own that a step touches and that exist after it.
  private func touched(by step: WriteStep) -> [String] {
    switch step {
    case .count(let index): [counter(index)]
    case .transfer: [leftHalf, rightHalf]
    case .create, .delete: []
    case .insert, .remove: [list]
    case .all(let index, _): [counter(index), leftHalf, rightHalf, list]
    }
  }

  private mutating func transfer(_ amount: Int) {
    left -= amount
    right += amount
    sequence += 1
  }

  private mutating func create(isNamed: Bool) {
    items.append(Member(reference: isNamed ? item(nextItem) : nil, number: nextItem))
    nextItem += 1
  }

  private mutating func insert(at index: Int) {
    entries.insert(Member(reference: nil, number: nextEntry), at: index)
    nextEntry += 1
  }
}

// MARK: Requests

extension WriterObjects {
  /// The request that creates the writer's objects.
  var founding: WireRequest {
    var operations = [
      #"{"op":"create","object":"\#(group)","value":{}}"#,
      #"{"op":"create","object":"\#(leftHalf)","value":{"value":\#(left)}}"#,
      #"{"op":"create","object":"\#(rightHalf)","value":{"value":\#(right)}}"#,
      #"{"op":"create","object":"\#(list)","value":{"name":"\#(name)"}}"#,
    ]
    for index in counters.indices {
      operations.append(#"{"op":"create","object":"\#(counter(index))","value":{"group":"\#(group)"}}"#)
    }
    return transaction(operations)
  }

  /// Returns the request for a step.
  func request(_ step: WriteStep) -> WireRequest {
    switch step {
    case .count(let index):
      return request("PUT", "\(counter(index))/value", "\(counters[index] + 1)")
    case .transfer(let amount):
      return transaction(transferOperations(amount))
    case .create(isNamed: true):
      return request("PUT", item(nextItem), itemValue)
    case .create(isNamed: false):
      return request("POST", "Item", itemValue)
    case .delete(let index):
      return request("DELETE", items[index].reference ?? "")
    case .insert(let count, let index):
      let places = (index..<index + count).map { "\($0)" }.joined(separator: ",")
      let values = (0..<count).map { entryValue(nextEntry + $0) }.joined(separator: ",")
      return request("POST", "\(list)/entries?index=\(places)", "[\(values)]")
    case .remove(let index):
      return transaction(removal(index))
    case .all(let counter, let amount):
      return transaction(everything(counter, amount))
    }
  }

  private func everything(_ index: Int, _ amount: Int) -> [String] {
    var operations = [
      #"{"op":"set","object":"\#(counter(index))","keyPath":"value","value":\#(counters[index] + 1)}"#
    ]
    operations += transferOperations(amount)
    if let first = items.first?.reference { operations.append(#"{"op":"delete","object":"\#(first)"}"#) }
    operations.append(#"{"op":"create","entity":"Item","value":\#(itemValue)}"#)
    operations.append(
      #"{"op":"insert","object":"\#(list)","keyPath":"entries","index":[0],"value":[\#(entryValue(nextEntry))]}"#)
    if entries.count + 1 > Self.maximumEntries, let last = entries.last?.reference {
      operations.append(#"{"op":"delete","object":"\#(last)"}"#)
    }
    return operations
  }

  private func transferOperations(_ amount: Int) -> [String] {
    [(leftHalf, left - amount), (rightHalf, right + amount)].map { half, value in
      #"{"op":"patch","object":"\#(half)","value":{"value":\#(value),"sequence":\#(sequence + 1)}}"#
    }
  }

  private func removal(_ index: Int) -> [String] {
    let entry = entries[index].reference ?? ""
    return [
      #"{"op":"remove","object":"\#(list)","keyPath":"entries","index":[\#(index)]}"#,
      #"{"op":"delete","object":"\#(entry)"}"#,
    ]
  }

  private var itemValue: String { #"{"number":\#(nextItem),"writer":\#(writer)}"# }

  private func entryValue(_ number: Int) -> String { #"{"number":\#(number)}"# }

  private func transaction(_ operations: [String]) -> WireRequest {
    .transaction(operations, writerHeader)
  }

  private func request(_ method: String, _ target: String, _ body: String? = nil) -> WireRequest {
    WireRequest(method, "/v1/objects/" + target, writerHeader, body: body)
  }

  private var writerHeader: [String: String] { ["Keyway-Writer": name] }
}

// MARK: Responses

extension WriterObjects {
  /// Returns the objects after a step that was acknowledged, with its revision and the names that the server made.
  func acknowledging(_ step: WriteStep, _ response: WireResponse) -> WriterObjects {
    var objects = after(step)
    guard let revision = Cursor(of: response)?.revision else { return objects }
    for reference in touched(by: step) { objects.revisions[reference] = revision }
    switch step {
    case .create:
      if let index = objects.items.indices.last {
        let created = response.json["@ref"].text
        objects.items[index].reference = objects.items[index].reference ?? created
        objects.revisions[created ?? ""] = revision
      }
    case .insert:
      objects.learnEntries(response.json)
    case .all:
      let created = response.json["results"].items.compactMap { $0["object"].text }
        .last { $0.hasPrefix("Item/") }
      if let index = objects.items.indices.last, let created {
        objects.items[index].reference = created
        objects.revisions[created] = revision
      }
    default: break
    }
    return objects
  }

  /// Sets the names of the entries from the server's list.
  mutating func learnEntries(_ list: Value) {
    let names = list.items
    guard names.count == entries.count else { return }
    for (index, name) in names.enumerated() { entries[index].reference = entries[index].reference ?? name.text }
  }

  /// Returns the objects whose revision shows when a step was done; none for a deletion.
  func revised(by step: WriteStep) -> [String] {
    var references = touched(by: step)
    switch step {
    case .create, .all:
      if let reference = items.last?.reference { references.append(reference) }
    default: break
    }
    return references
  }

  /// Returns the same objects with the names and revisions that were read.
  func adopting(_ read: WriterObjects) -> WriterObjects {
    var objects = self
    objects.items = read.items
    objects.entries = read.entries
    objects.revisions = read.revisions
    return objects
  }
}

// MARK: Reading

extension WriterObjects {
  /// Reads all of a writer's objects, which are not written meanwhile. Throws if they contradict each other.
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

  /// Returns a difference between these objects, which were read, and the known ones; nil if there is none. Unknown
  /// names are accepted.
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

/// One write of the crash test: its effect on a writer's objects, and its request.
enum WriteStep: Hashable, Sendable {
  /// Adds one to a counter, by setting its key path.
  case count(Int)
  /// Moves an amount from one half to the other, in one transaction.
  case transfer(Int)
  /// Creates an item, under a name made by the writer or, by POST, one made by the server.
  case create(isNamed: Bool)
  /// Deletes the item at an index.
  case delete(Int)
  /// Inserts a number of new entries into the list at an index.
  case insert(count: Int, at: Int)
  /// Removes the entry at an index from the list, and deletes it.
  case remove(Int)
  /// Makes several changes in one transaction: a counter, both halves, a deleted item, a created one, an entry.
  case all(counter: Int, amount: Int)

  /// Returns a random step that is possible with a writer's objects.
  static func random(from objects: WriterObjects, using random: inout SplitMix64) -> WriteStep {
    let counter = Int.random(in: 0..<WriterObjects.counterCount, using: &random)
    let amount = Int.random(in: 1...100, using: &random)
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<6: return .count(counter)
    case 6..<9: return .transfer(amount)
    case 9..<13:
      if objects.items.count < 2 || objects.items.count < WriterObjects.maximumItems && random.chance(55) {
        return .create(isNamed: random.chance(50))
      }
      return .delete(Int.random(in: objects.items.indices, using: &random))
    case 13..<18:
      if objects.entries.isEmpty || objects.entries.count < WriterObjects.maximumEntries && random.chance(55) {
        return .insert(
          count: Int.random(in: 1...3, using: &random), at: Int.random(in: 0...objects.entries.count, using: &random))
      }
      return .remove(Int.random(in: objects.entries.indices, using: &random))
    default: return .all(counter: counter, amount: amount)
    }
  }
}

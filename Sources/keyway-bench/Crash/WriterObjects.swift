/// What one writer's objects are, as far as the writer knows: it alone writes them.
struct WriterObjects: Hashable, Sendable {
  static let counterCount = 3
  static let maximumItems = 12
  static let maximumEntries = 12
  /// What the two halves make together, for ever.
  static let sum = 1000

  /// An item or an entry.
  struct Member: Hashable, Sendable {
    /// `Item/…`; nil while the server's name for it is not known.
    var reference: String?
    /// Its number, of which there is one of a sort.
    var number: Int
  }

  /// The number of the writer.
  let writer: Int
  var counters = [Int](repeating: 0, count: counterCount)
  var left = sum
  var right = 0
  /// How many transfers there were.
  var sequence = 0
  /// In the order of their numbers.
  var items: [Member] = []
  /// In the order of the list.
  var entries: [Member] = []
  /// The numbers that the next item and entry get.
  var nextItem = 1
  var nextEntry = 1
  /// The revisions of the objects that the last write of each left, by reference.
  var revisions: [String: Int] = [:]

  init(writer: Int) { self.writer = writer }

  /// The names of the writer's objects.
  func counter(_ index: Int) -> String { "Counter/\(writer)-\(index)" }
  var leftHalf: String { "Half/\(writer)-left" }
  var rightHalf: String { "Half/\(writer)-right" }
  var list: String { "List/\(writer)" }
  var group: String { "Group/\(writer)" }
  var name: String { "writer-\(writer)" }
  func item(_ number: Int) -> String { "Item/\(writer)-\(number)" }

  /// How many objects there are: the group, the list, the halves, the counters, and what comes and goes.
  var objectCount: Int { 4 + counters.count + items.count + entries.count }

  /// The sum of the counters.
  var total: Int { counters.reduce(0, +) }

  /// What the objects are after a step. Names that the server makes are not known yet.
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

  /// The objects with `@revision` of their own that a step touches and that are there after it.
  func touched(by step: WriteStep) -> [String] {
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

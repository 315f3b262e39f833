/// Values under ids that contain their places: a lookup reads memory once and hashes nothing.
///
/// The place of a removed value is reused for a later one, under another id. Memory: as many places as there were
/// values at one time since the table was last empty.
struct SlotTable<Value> {
  /// The id of a value. A later one is greater, and none is used twice.
  struct ID: Hashable, Comparable, Sendable {
    private let number: UInt64
    fileprivate let slot: Int

    fileprivate init(number: UInt64, slot: Int) {
      (self.number, self.slot) = (number, slot)
    }

    static func == (one: ID, other: ID) -> Bool { one.number == other.number }

    static func < (one: ID, other: ID) -> Bool { one.number < other.number }

    func hash(into hasher: inout Hasher) { hasher.combine(number) }
  }

  private var slots: ContiguousArray<(id: ID, value: Value?)> = []
  private var free: [Int] = []
  private var nextNumber: UInt64 = 0

  /// The number of values.
  var count: Int { slots.count - free.count }

  /// The values, in no order.
  var values: some Sequence<Value> { slots.lazy.compactMap(\.value) }

  /// The values with their ids, in no order.
  var entries: some Sequence<(id: ID, value: Value)> {
    slots.lazy.compactMap { slot in slot.value.map { (slot.id, $0) } }
  }

  /// Adds a value and returns its id.
  mutating func insert(_ value: Value) -> ID {
    let slot = free.popLast() ?? slots.count
    let id = ID(number: nextNumber, slot: slot)
    nextNumber += 1
    if slot < slots.count { slots[slot] = (id, value) } else { slots.append((id, value)) }
    return id
  }

  /// The value of an id; nil if it was removed. Only an existing value may be set, and not to nil.
  subscript(id: ID) -> Value? {
    get { exists(id) ? slots[id.slot].value : nil }
    _modify {
      precondition(exists(id), "the value was removed")
      yield &slots[id.slot].value
    }
  }

  /// Removes and returns a value; nil if it was removed before.
  mutating func remove(_ id: ID) -> Value? {
    guard exists(id), let value = slots[id.slot].value.take() else { return nil }
    free.append(id.slot)
    if count == 0 { (slots, free) = ([], []) }
    return value
  }

  private func exists(_ id: ID) -> Bool {
    id.slot < slots.count && slots[id.slot].id == id && slots[id.slot].value != nil
  }
}

extension SlotTable: Sendable where Value: Sendable {}

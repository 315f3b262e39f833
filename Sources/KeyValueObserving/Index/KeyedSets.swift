/// A dictionary from keys of objects to sets, for tables that are too large for a cache: a lookup reads one word of a
/// narrow table and the one piece of memory that has the key and its set, where `Dictionary` reads a line of its keys
/// and another of its values.
///
/// Open addressing with linear probing (Knuth, The Art of Computer Programming, vol. 3, §6.4). Keys are hashed by
/// Swift's seeded `Hasher`, so that a client cannot choose ids that collide.
struct KeyedSets<Element: Hashable> {
  fileprivate struct Entry {
    let key: ObservedKey
    var elements: SmallSet<Element>
  }

  /// A place of the table: 32 bits of the hash of a key, and the index of its entry.
  fileprivate struct Place {
    var tag: UInt32
    /// The index of the entry; `free` for none.
    var entry: UInt32

    static var free: UInt32 { .max }
  }

  /// The keys that have elements, in no order.
  private var entries: ContiguousArray<Entry> = []
  /// The places: a power of two of them, of which at least half are free; none if there are no entries.
  private var places: ContiguousArray<Place> = []

  /// True if no key has an element.
  var isEmpty: Bool { entries.isEmpty }

  /// The number of (key, element) pairs. O(n).
  var pairCount: Int { entries.reduce(0) { $0 + $1.elements.count } }

  /// The elements of a key.
  subscript(key: ObservedKey) -> SmallSet<Element> {
    place(of: key, Self.tag(of: key)).map { entries[Int(places[$0].entry)].elements } ?? SmallSet()
  }

  /// Returns true if a key has elements.
  func contains(_ key: ObservedKey) -> Bool { place(of: key, Self.tag(of: key)) != nil }

  /// Adds an element to the set of a key.
  mutating func insert(_ element: Element, for key: ObservedKey) {
    let tag = Self.tag(of: key)
    if let place = place(of: key, tag) {
      entries[Int(places[place].entry)].elements.insert(element)
      return
    }
    precondition(entries.count < Int(Place.free), "more keys than entries can be numbered")
    if places.count < 2 * (entries.count + 1) { grow() }
    put(Place(tag: tag, entry: UInt32(entries.count)))
    entries.append(Entry(key: key, elements: .one(element)))
  }

  /// Removes an element from the set of a key. Returns true if it was the key's last element.
  @discardableResult
  mutating func remove(_ element: Element, from key: ObservedKey) -> Bool {
    guard let place = place(of: key, Self.tag(of: key)) else { return false }
    let index = Int(places[place].entry)
    entries[index].elements.remove(element)
    guard entries[index].elements.isEmpty else { return false }
    free(place)
    // The last entry takes the place of this one.
    let last = entries.count - 1
    if index < last {
      var moved = Int(Self.tag(of: entries[last].key)) & (places.count - 1)
      while places[moved].entry != UInt32(last) { moved = (moved + 1) & (places.count - 1) }
      places[moved].entry = UInt32(index)
      entries.swapAt(index, last)
    }
    entries.removeLast()
    if entries.isEmpty { (entries, places) = ([], []) }
    return true
  }

  // MARK: Places

  private static func tag(of key: ObservedKey) -> UInt32 { UInt32(truncatingIfNeeded: key.hashValue) }

  /// Returns the index of a key's place in the table; nil if it has none.
  private func place(of key: ObservedKey, _ tag: UInt32) -> Int? {
    guard !places.isEmpty else { return nil }
    var place = Int(tag) & (places.count - 1)
    while places[place].entry != Place.free {
      if places[place].tag == tag, entries[Int(places[place].entry)].key == key { return place }
      place = (place + 1) & (places.count - 1)
    }
    return nil
  }

  /// Stores `new` in the first free place, beginning at the place that its tag asks for.
  private mutating func put(_ new: Place) {
    var place = Int(new.tag) & (places.count - 1)
    while places[place].entry != Place.free { place = (place + 1) & (places.count - 1) }
    places[place] = new
  }

  private mutating func grow() {
    let former = places
    places = ContiguousArray(repeating: Place(tag: 0, entry: Place.free), count: max(8, 2 * former.count))
    for place in former where place.entry != Place.free { put(place) }
  }

  /// Frees a place, and moves places behind it into the gap if they would not be found otherwise (Knuth's algorithm R).
  private mutating func free(_ place: Int) {
    let mask = places.count - 1
    var hole = place
    var next = (place + 1) & mask
    while places[next].entry != Place.free {
      // Compare the distances from the place where the key is looked for first.
      let wanted = Int(places[next].tag) & mask
      if (next - wanted) & mask >= (next - hole) & mask {
        places[hole] = places[next]
        hole = next
      }
      next = (next + 1) & mask
    }
    places[hole].entry = Place.free
  }
}

extension KeyedSets: Sendable where Element: Sendable {}

extension KeyedSets.Entry: Sendable where Element: Sendable {}

/// A set for mostly one element, which then takes no memory of its own.
enum SmallSet<Element: Hashable>: Sequence {
  /// A single element.
  case one(Element)
  /// Any other number of elements.
  case many(Set<Element>)

  /// An empty set.
  init() { self = .many([]) }

  /// True if the set is empty.
  var isEmpty: Bool { count == 0 }

  /// The element of a set that has one; nil for any other.
  var only: Element? {
    if case .one(let only) = self { only } else { nil }
  }

  /// The number of elements.
  var count: Int {
    switch self {
    case .one: 1
    case .many(let elements): elements.count
    }
  }

  /// Returns true if this is an element.
  func contains(_ element: Element) -> Bool {
    switch self {
    case .one(let only): only == element
    case .many(let elements): elements.contains(element)
    }
  }

  /// Adds an element. Returns false if it was there already.
  @discardableResult
  mutating func insert(_ element: Element) -> Bool {
    switch self {
    case .one(let only):
      guard only != element else { return false }
      self = .many([only, element])
      return true
    case .many(var elements):
      guard !elements.isEmpty else {
        self = .one(element)
        return true
      }
      // With a second owner the set would be copied.
      self = .many([])
      let isNew = elements.insert(element).inserted
      self = .many(elements)
      return isNew
    }
  }

  /// Removes an element, if it is there.
  mutating func remove(_ element: Element) {
    switch self {
    case .one(let only): if only == element { self = .many([]) }
    case .many(var elements):
      self = .many([])
      elements.remove(element)
      self = elements.count == 1 ? elements.first.map(Self.one) ?? .many([]) : .many(elements)
    }
  }

  /// Returns an iterator over the elements, in no order.
  func makeIterator() -> Iterator {
    switch self {
    case .one(let only): Iterator(only: only, rest: nil)
    case .many(let elements): Iterator(only: nil, rest: elements.makeIterator())
    }
  }

  /// An iterator over the elements of a set.
  struct Iterator: IteratorProtocol {
    fileprivate var only: Element?
    fileprivate var rest: Set<Element>.Iterator?

    /// The next element.
    mutating func next() -> Element? { only.take() ?? rest?.next() }
  }
}

extension SmallSet: Sendable where Element: Sendable {}

extension SmallSet.Iterator: Sendable where Element: Sendable {}

extension Dictionary {
  /// Removes an element from a key's set, and the key with its last element. Returns true if the key was removed.
  @discardableResult
  mutating func remove<Element>(_ element: Element, from key: Key) -> Bool where Value == Set<Element> {
    self[key]?.remove(element)
    guard self[key]?.isEmpty == true else { return false }
    self[key] = nil
    return true
  }

  /// Removes an element from a key's small set, and the key with its last element. Returns true if the key was removed.
  @discardableResult
  mutating func remove<Element>(_ element: Element, from key: Key) -> Bool where Value == SmallSet<Element> {
    self[key]?.remove(element)
    guard self[key]?.isEmpty == true else { return false }
    self[key] = nil
    return true
  }
}

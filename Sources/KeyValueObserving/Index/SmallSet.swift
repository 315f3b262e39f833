/// A set that mostly has one element, which then takes no memory of its own.
enum SmallSet<Element: Hashable>: Sequence {
  /// A single element.
  case one(Element)
  /// Any other number of them.
  case many(Set<Element>)

  /// An empty set.
  init() { self = .many([]) }

  /// Whether there is no element.
  var isEmpty: Bool { count == 0 }

  /// The element of a set that has one; nil for any other.
  var only: Element? {
    if case .one(let only) = self { only } else { nil }
  }

  /// How many elements there are.
  var count: Int {
    switch self {
    case .one: 1
    case .many(let elements): elements.count
    }
  }

  /// Whether this is an element.
  func contains(_ element: Element) -> Bool {
    switch self {
    case .one(let only): only == element
    case .many(let elements): elements.contains(element)
    }
  }

  /// Adds an element; false where it is there already.
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

  /// Takes an element away, if it is there.
  mutating func remove(_ element: Element) {
    switch self {
    case .one(let only): if only == element { self = .many([]) }
    case .many(var elements):
      self = .many([])
      elements.remove(element)
      self = elements.count == 1 ? elements.first.map(Self.one) ?? .many([]) : .many(elements)
    }
  }

  /// Goes through the elements, in no order.
  func makeIterator() -> Iterator {
    switch self {
    case .one(let only): Iterator(only: only, rest: nil)
    case .many(let elements): Iterator(only: nil, rest: elements.makeIterator())
    }
  }

  /// Goes through the elements of a set.
  struct Iterator: IteratorProtocol {
    fileprivate var only: Element?
    fileprivate var rest: Set<Element>.Iterator?

    /// The next element.
    mutating func next() -> Element? { only.take() ?? rest?.next() }
  }
}

extension SmallSet: Sendable where Element: Sendable {}

extension SmallSet.Iterator: Sendable where Element: Sendable {}

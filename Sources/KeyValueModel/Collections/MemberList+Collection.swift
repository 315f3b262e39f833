extension MemberList: RandomAccessCollection {
  /// The place of the first member.
  public var startIndex: Int { 0 }
  /// The place behind the last member.
  public var endIndex: Int { count }

  /// How many members there are. O(1).
  public var count: Int {
    switch storage {
    case .few(let members): members.count
    case .labelled(let box): box[0].count
    case .sorted(let members): members.count
    }
  }

  /// The member at a place. O(log n); an iteration is quicker than a subscript for each place.
  public subscript(index: Int) -> Value {
    switch storage {
    case .few(let members): members[index]
    case .labelled(let box): box[0].entries.element(at: index).member
    case .sorted(let members): members.element(at: index)
    }
  }

  /// The members in order.
  public func makeIterator() -> Iterator { Iterator(storage) }

  /// Walks over the members; a step costs O(1) on the average.
  public struct Iterator: IteratorProtocol, Sendable {
    private var few: [Value] = []
    private var position = 0
    private var labelled: RankedTree<LabelledMembers.LabelOrder>.Iterator?
    private var sorted: RankedTree<MemberOrder>.Iterator?

    init(_ storage: Storage) {
      switch storage {
      case .few(let members): few = members
      case .labelled(let box): labelled = box[0].entries.makeIterator()
      case .sorted(let members): sorted = members.makeIterator()
      }
    }

    /// The next member, nil behind the last one.
    public mutating func next() -> Value? {
      if position < few.count {
        defer { position += 1 }
        return few[position]
      }
      return labelled?.next()?.member ?? sorted?.next()
    }
  }
}

extension MemberList: Hashable {
  /// Equal when both have the same members in the same order, whether chosen or kept. O(n); O(1) for copies of one list
  /// that have not changed since.
  public static func == (left: MemberList, right: MemberList) -> Bool {
    switch (left.storage, right.storage) {
    case (.few(let left), .few(let right)): left == right
    case (.labelled(let left), .labelled(let right)) where left[0].entries.isCopy(of: right[0].entries): true
    case (.sorted(let left), .sorted(let right)) where left.isCopy(of: right): true
    default: left.count == right.count && left.elementsEqual(right)
    }
  }

  /// Feeds what equality looks at.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(count)
    for member in self { hasher.combine(member) }
  }
}

/// The members of a to-many: values, none of them twice. An ordered one has them where the caller puts them, an
/// unordered one keeps them in order: references by their bytes, other values by kind and then by value.
///
/// Persistent: a copy costs O(1) and shares everything with the original. All that looks up or changes one member costs
/// O(log n). A list of eight members or fewer, which most are, is a plain array.
public struct MemberList: Sendable {
  // The order of the two makes a `Value` a word smaller.
  var storage: Storage
  /// Whether the caller chooses the places.
  public let isOrdered: Bool

  /// Where the members are.
  enum Storage: Sendable {
    /// A few members, of either kind of list.
    case few([Value])
    /// Many members of an ordered list: always one, in an array because that is a box that is copied when it is shared
    /// and changed in place when it is not, which an indirect case never is.
    case labelled([LabelledMembers])
    /// Many members of an unordered list.
    case sorted(RankedTree<MemberOrder>)
  }

  /// The most members of a plain array. One that grows over this becomes a tree.
  package static var arrayLimit: Int { 8 }
  /// A tree that shrinks to this becomes a plain array again: less, so that a list at the limit does not swing.
  package static var treeLimit: Int { 4 }

  /// An empty list, which allocates nothing.
  public init(isOrdered: Bool) {
    self.isOrdered = isOrdered
    storage = .few([])
  }

  /// A list of these members, in this order where the list is ordered; of one that comes twice the first stays.
  /// O(n) for an ordered list, O(n log n) for an unordered one, O(n) where the members are in order already.
  public init(_ members: some Sequence<Value>, isOrdered: Bool) {
    self.isOrdered = isOrdered
    storage = isOrdered ? Self.ordered(members) : Self.unordered(members)
  }

  private static func ordered(_ members: some Sequence<Value>) -> Storage {
    let members = Array(members)
    guard members.count <= arrayLimit else {
      let labelled = LabelledMembers(members)
      return labelled.count > arrayLimit ? .labelled([labelled]) : .few(labelled.entries.map(\.member))
    }
    var few: [Value] = []
    few.reserveCapacity(members.count)
    for member in members where !few.contains(member) { few.append(member) }
    return .few(few)
  }

  private static func unordered(_ members: some Sequence<Value>) -> Storage {
    // The sort is stable: of equal members the first stays first.
    let sorted = members.sorted(by: MemberOrder.precedes)
    var unique: [Value] = []
    unique.reserveCapacity(sorted.count)
    for member in sorted {
      if let last = unique.last, !MemberOrder.precedes(last, member) { continue }
      unique.append(member)
    }
    return unique.count > arrayLimit ? .sorted(RankedTree(sorted: unique)) : .few(unique)
  }

  /// Whether this is a member. O(log n).
  public func contains(_ member: Value) -> Bool {
    switch storage {
    case .few: index(of: member) != nil
    case .labelled(let box): box[0].contains(member)
    case .sorted(let members): members.contains(member)
    }
  }

  /// The place of a member, nil where it is none. O(log n).
  public func index(of member: Value) -> Int? {
    switch storage {
    case .few(let members): members.firstIndex(of: member)
    case .labelled(let box): box[0].index(of: member)
    case .sorted(let members): members.rank(of: member)
    }
  }

  /// The members in order. O(n), O(1) for a list of few.
  public var array: [Value] {
    switch storage {
    case .few(let members): members
    case .labelled(let box): box[0].entries.map(\.member)
    case .sorted(let members): Array(members)
    }
  }
}

import KeyValueModel

/// The members of one collection of one object, followed for what is read of each of them, and folded where they are
/// folded. However many observations read it, there is one.
struct CollectionWatch {
  /// One member.
  struct Link {
    /// What is read of it, as the paths lead now.
    var dependencies: [Dependency] { didSet { onlyAttribute = Self.onlyAttribute(of: dependencies) } }
    /// The key of the member that is all that is read of it, where no computed key and no rule stands in between; nil
    /// where that is anything else. Known without a look at the dependencies.
    private(set) var onlyAttribute: Int32?
    /// What it has added to the fold; nil while it has not yet.
    var contribution: RunningFold.Contribution?

    init(dependencies: [Dependency]) {
      self.dependencies = dependencies
      onlyAttribute = Self.onlyAttribute(of: dependencies)
    }

    private static func onlyAttribute(of dependencies: [Dependency]) -> Int32? {
      guard dependencies.count == 1, let only = dependencies.first, only.gates.isEmpty, !only.isOfRule,
        !only.observedKey.isCollection
      else { return nil }
      return Int32(only.observedKey.key)
    }
  }

  /// The collection's key.
  let list: ObservedKey
  /// What is read of the members.
  let branch: KeyTree.Branch
  private(set) var links: [Value: Link] = [:]
  /// True once all members are followed; what they fold into is known only then.
  var isComplete = true
  private(set) var running: RunningFold?

  /// A watch that has no members yet.
  init(list: ObservedKey, branch: KeyTree.Branch) {
    self.list = list
    self.branch = branch
    running = branch.fold.map(RunningFold.init)
  }

  /// Takes a member in, or follows it anew; gives what was followed before.
  mutating func link(_ member: Value, _ dependencies: [Dependency]) -> [Dependency] {
    guard let former = links[member] else {
      links[member] = Link(dependencies: dependencies)
      return []
    }
    links[member]?.dependencies = dependencies
    return former.dependencies
  }

  /// Lets a member go; gives what was followed.
  mutating func unlink(_ member: Value) -> [Dependency] {
    guard let link = links.removeValue(forKey: member) else { return [] }
    if let contribution = link.contribution { running?.remove(contribution) }
    return link.dependencies
  }

  /// Puts what a member adds now, which is `record`, in the place of what it added before, where an attribute of it is
  /// all that is read of it; false where more is, and then nothing is done.
  mutating func refold(_ member: Value, attribute: Int, by record: ObjectRecord, in state: ModelState) -> Bool {
    guard let place = links.index(forKey: member), links.values[place].onlyAttribute == Int32(attribute) else {
      return false
    }
    guard let fold = branch.fold else { return true }
    // Mostly the record, which is at hand, says it all.
    let isFoldedItself = fold.attribute == attribute
    contribute(
      isFoldedItself ? .value(record.attribute(at: attribute)) : state.contribution(of: member, to: fold), at: place)
    return true
  }

  /// Puts what a member adds now in the place of what it added before.
  mutating func contribute(_ contribution: RunningFold.Contribution, from member: Value) {
    guard let place = links.index(forKey: member) else { return }
    contribute(contribution, at: place)
  }

  private mutating func contribute(_ contribution: RunningFold.Contribution, at place: Dictionary<Value, Link>.Index) {
    let former = links.values[place].contribution
    guard former != contribution else { return }
    if let former { running?.remove(former) }
    running?.insert(contribution)
    links.values[place].contribution = contribution
  }
}

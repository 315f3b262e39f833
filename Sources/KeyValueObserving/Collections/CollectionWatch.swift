import KeyValueModel

/// The members of one collection of one object, followed for what is read of each of them, and folded where they are
/// folded. However many observations read it, there is one.
struct CollectionWatch {
  /// One member.
  struct Link {
    /// What is read of it, as the paths lead now.
    var dependencies: [Dependency]
    /// What it has added to the fold; nil while it has not yet.
    var contribution: RunningFold.Contribution?
  }

  /// The collection's key.
  let list: ObservedKey
  /// What is read of the members.
  let branch: KeyTree.Branch
  private(set) var links: [Value: Link] = [:]
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
      links[member] = Link(dependencies: dependencies, contribution: nil)
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

  /// Puts what a member adds now in the place of what it added before.
  mutating func contribute(_ contribution: RunningFold.Contribution, from member: Value) {
    guard let place = links.index(forKey: member) else { return }
    let former = links.values[place].contribution
    guard former != contribution else { return }
    if let former { running?.remove(former) }
    running?.insert(contribution)
    links.values[place].contribution = contribution
  }
}

import HashTreeCollections

extension MemberList {
  /// What is wrong with the list: the trees and labels inside, the order, the form that its size asks for, members that
  /// are there twice. Empty where all is well. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults: [String] = []
    let members = Array(self)
    if Set(members).count != count { faults.append("\(count) members, of which only \(Set(members).count) differ") }
    if !isOrdered, !zip(members, members.dropFirst()).allSatisfy(MemberOrder.precedes) {
      faults.append("the members are not in order")
    }
    switch storage {
    case .few(let members):
      if members.count > Self.arrayLimit { faults.append("an array of \(members.count)") }
    case .labelled(let box):
      if !isOrdered { faults.append("labels in an unordered list") }
      faults += box[0].checkInvariants()
    case .sorted(let sorted):
      if isOrdered { faults.append("an ordered list that is sorted") }
      faults += sorted.checkInvariants()
    }
    if case .few = storage {} else if count <= Self.treeLimit { faults.append("a tree of \(count)") }
    return faults
  }
}

extension LabelledMembers {
  /// What is wrong with the tree, or between the tree and the dictionary. Empty where all is well. For tests; O(n).
  package func checkInvariants() -> [String] {
    var faults = entries.checkInvariants()
    if labels.count != count { faults.append("\(labels.count) labels for \(count) members") }
    for entry in entries where labels[entry.member] != entry.label {
      faults.append("\(entry.member) has two labels")
    }
    return faults
  }
}

import KeyValueModel

extension OracleWorld {
  /// A key that an operation set.
  struct Setting {
    let object: String
    let key: String
    var isSilent: Bool
    /// The operation's changes of the collection, while it is applied.
    var moves: Moves?
    /// The change of the members, or nil if the whole value is set.
    var change: MemberChange?
  }

  /// The changes of one collection by an operation, which may be several.
  struct Moves {
    let before: [Value]
    var after: [Value]
    var kinds: [Kind]

    enum Kind: Equatable {
      case whole
      case difference
      case replacement(MemberChange)
    }
  }

  struct MemberChange: Equatable {
    let kind: String
    let indexes: [Int]?
    var old: [Value] = []
    var new: [Value] = []
  }

  /// Completes the settings, and drops those of collections that did not change and were not set as a whole.
  mutating func finishSettings() {
    settings = settings.compactMap { setting in
      guard let moves = setting.moves, let key = key(setting.object, setting.key) else { return setting }
      var finished = setting
      if moves.kinds.allSatisfy({ $0 == .difference }) {
        if moves.before == moves.after { return nil }
        // A collection of a new object is set as a whole.
        if !made.contains(setting.object) { finished.change = difference(moves, isOrdered: key.isOrdered) }
      } else if moves.kinds.count == 1, case .replacement(let change) = moves.kinds[0] {
        finished.change = change
      }
      return finished
    }
  }

  private func difference(_ moves: Moves, isOrdered: Bool) -> MemberChange? {
    let gone = moves.before.indices.filter { !moves.after.contains(moves.before[$0]) }
    let come = moves.after.indices.filter { !moves.before.contains(moves.after[$0]) }
    if come.isEmpty, moves.before.enumerated().filter({ !gone.contains($0.offset) }).map(\.element) == moves.after {
      return MemberChange(kind: "removal", indexes: isOrdered ? gone : nil, old: gone.map { moves.before[$0] })
    }
    if gone.isEmpty, moves.after.enumerated().filter({ !come.contains($0.offset) }).map(\.element) == moves.before {
      return MemberChange(kind: "insertion", indexes: isOrdered ? come : nil, new: come.map { moves.after[$0] })
    }
    return nil
  }

  // MARK: Storing

  mutating func store(_ object: String, _ key: OracleSchema.Key, _ value: Value) throws {
    guard !value.isNull || key.isOptional else { throw Refused() }
    let isEqual = read(object, key.name) == value
    objects[object]?[key.name] = value
    let isSilent = key.notifies == "manual" || (key.notifies == "changed" && isEqual)
    settings.append(Setting(object: object, key: key.name, isSilent: isSilent))
  }

  mutating func store(_ object: String, _ key: OracleSchema.Key, members: [Value], _ kind: Moves.Kind) {
    let old = list(object, key.name)
    let new = key.isOrdered ? members : OracleFold.sorted(members)
    objects[object]?[key.name] = .array(new)
    let isSilent = key.notifies == "manual" || (key.notifies == "changed" && old == new && !made.contains(object))
    guard let index = settings.firstIndex(where: { $0.object == object && $0.key == key.name }) else {
      let moves = Moves(before: old, after: new, kinds: [kind])
      settings.append(Setting(object: object, key: key.name, isSilent: isSilent, moves: moves))
      return
    }
    settings[index].isSilent = settings[index].isSilent && isSilent
    settings[index].moves?.after = new
    settings[index].moves?.kinds.append(kind)
  }
}

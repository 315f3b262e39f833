import KeyValueModel

/// The rights of an identity, as section 11 of the specification defines them.
extension WriteRuleWorld {
  /// One action of a write, as the oracle sees it.
  enum Act {
    /// Creates an object with these values of keys.
    case create(String, attributes: [String: Value], links: [String: Set<String>])
    /// Sets keys of an object; a `PUT` resets all others to their defaults.
    case write(String, attributes: [String: Value], links: [String: Set<String>], isPut: Bool)
    /// Replaces the members of a to-many relationship of an object, and creates the ones in `made`.
    case members(String, key: String, Set<String>, made: [String])
    case delete(String)
    case lifetime(String, Lifetime)
  }

  /// The verdict on a transaction, and the state that it leaves.
  struct Verdict {
    var isAllowed = true
    var state: State
    private let before: State
    private let world: WriteRuleWorld
    private let identity: Identity
    private var updated: Set<String> = []
    private var created: Set<String> = []
    private var leased: Set<String> = []

    init(_ acts: [Act], on state: State, by identity: Identity, in world: WriteRuleWorld) {
      (self.state, before, self.world, self.identity) = (state, state, world, identity)
      for act in acts { perform(act) }
      for object in created where self.state.objects[object] != nil { require("create", object, in: self.state) }
      for object in updated where self.state.objects[object] != nil { require("update", object, in: self.state) }
      for object in leased where self.state.objects[object] != nil { require("delete", object, in: self.state) }
    }

    private mutating func require(_ action: String, _ object: String, in state: State) {
      let rule = world.rules["\(State.entity(object)).\(action)"]
      if rule?.holds(object, state, before, identity) != true { isAllowed = false }
    }

    /// Checks the rule of a key, which sees only the identity.
    private mutating func require(_ rules: [String: Rule], _ object: String, _ key: String) {
      guard let rule = rules["\(State.entity(object)).\(key)"] else { return }
      if !rule.holds(object, before, before, identity) { isAllowed = false }
    }

    private mutating func requireUpdate(_ object: String) {
      guard before.objects[object] != nil, updated.insert(object).inserted else { return }
      require("update", object, in: before)
    }

    private mutating func perform(_ act: Act) {
      switch act {
      case .create(let object, let attributes, let links): create(object, attributes, links)
      case .write(let object, let attributes, let links, let isPut):
        requireUpdate(object)
        for key in Array(attributes.keys) + Array(links.keys) { require(world.keys, object, key) }
        for (key, value) in attributes { state.objects[object]?[key] = value }
        for (key, targets) in links { link(object, key, to: targets) }
        guard isPut else { return }
        for (key, value) in WriteRuleWorld.attributes[State.entity(object)] ?? [:] where attributes[key] == nil {
          state.objects[object]?[key] = value
        }
        for side in WriteRuleWorld.relations.flatMap({ [$0.one, $0.other] })
        where side.entity == State.entity(object) && links[side.key] == nil
          && !state.targets(object, side.key).isEmpty
        {
          require(world.keys, object, side.key)
          link(object, side.key, to: [])
        }
      case .members(let object, let key, let members, let made):
        requireUpdate(object)
        require(world.keys, object, key)
        for member in made { create(member, [:], [:]) }
        link(object, key, to: members)
      case .delete(let object):
        if before.objects[object] != nil { require("delete", object, in: before) }
        let posts = world.isCascading ? state.targets(object, "posts") : []
        for doomed in posts.union([object]) { state.remove(doomed) }
      case .lifetime(let object, let lifetime):
        state.leases[object] = lifetime == .unlimited ? nil : lifetime
        if lifetime == .unlimited { return }
        guard before.objects[object] != nil else {
          leased.insert(object)
          return
        }
        if case .seconds = lifetime, before.leases[object] == lifetime { return }
        require("delete", object, in: before)
      }
    }

    private mutating func create(_ object: String, _ attributes: [String: Value], _ links: [String: Set<String>]) {
      created.insert(object)
      // Such a rule also refuses an object that the transaction deletes again.
      let rule = world.rules["\(State.entity(object)).create"]
      if rule?.readsIdentityAlone == true { require("create", object, in: state) }
      state.objects[object] = (WriteRuleWorld.attributes[State.entity(object)] ?? [:]).merging(attributes) { $1 }
      for key in Array(attributes.keys) + Array(links.keys) { require(world.keys, object, key) }
      for (key, targets) in links { link(object, key, to: targets) }
    }

    /// Sets a relationship and checks the rules of everything that changes by it.
    private mutating func link(_ object: String, _ key: String, to targets: Set<String>) {
      let old = state
      state.link(object, key, to: targets)
      for relation in WriteRuleWorld.relations {
        for side in [relation.one, relation.other] where !side.isToMany {
          for other in state.objects.keys where State.entity(other) == side.entity {
            guard old.targets(other, side.key) != state.targets(other, side.key) else { continue }
            requireUpdate(other)
            require(world.keys, other, side.key)
          }
        }
        guard relation.one.isToMany, relation.other.isToMany else { continue }
        for link in old.links.symmetricDifference(state.links) where link.relation == relation {
          let (far, farKey) =
            link.one == object ? (link.other, relation.other.key) : (link.one, relation.one.key)
          if world.inverses["\(State.entity(far)).\(farKey)"] != nil {
            require(world.inverses, far, farKey)
          } else {
            requireUpdate(far)
            require(world.keys, far, farKey)
          }
        }
      }
    }
  }
}

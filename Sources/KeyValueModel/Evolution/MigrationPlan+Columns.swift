/// Where each value of a new record comes from.
extension MigrationPlan {
  mutating func column(_ index: Int, _ key: Key, of entity: Entity, _ position: Int) -> Column {
    let declaring = new.declaringEntity(of: index, in: entity)
    let conversion = mostSpecific(names.conversions, entity, key.name)
    let site = MigrationSite(declaring, index, key)
    let former = names.entities[position].storedKey(named: key.name)
    let holder = former.map { highestHolder(of: $0, named: key.name, from: position) } ?? declaring.name
    let place = "\(holder).\(key.name)"
    let setting = setting(entity, key, position)
    let isConverted = conversion != nil || setting != nil
    let source = source(of: key, former, at: site, place, position, isConverted: isConverted)
    var column = Column(key: key, site: site, source: source, place: place)
    if case .carried(_, let before) = source {
      if let conversion { column.conversion = (conversion.step, conversion.value) }
      column.isVerbatim = conversion == nil && goesOverAsItIs(before, key)
      column.isSettled = conversion == nil && isSettled(before, key)
      // Another object may take its side of a relationship away.
      let isKept = column.isVerbatim && !before.isOptional && key.relationship?.inverse == nil
      column.mayLackValue = !key.isOptional && !key.isToMany && !isKept
    } else {
      column.mayLackValue = !key.isOptional && !key.isToMany
      column.isSettled = key.relationship?.inverse == nil
    }
    if let setting {
      column.setting = setting
      column.isVerbatim = false
      column.isSettled = key.relationship?.inverse == nil
      column.mayLackValue = !key.isOptional
    }
    if conversion != nil, case .carried = source {
      for step in names.conversions where step.key == key.name && entity.isKind(of: step.entity) {
        usedConversions.insert(step.step)
      }
    }
    column.fills = fills(entity, key)
    return column
  }

  /// The values to fill in, of the steps that name the lowest of the entities that they concern.
  private func fills(_ entity: Entity, _ key: Key) -> [(step: Int, value: Value)] {
    let steps = names.fills.filter { $0.key == key.name && entity.isKind(of: $0.entity) }
    let lowest = steps.map { depth(of: $0.entity) }.max()
    return steps.filter { depth(of: $0.entity) == lowest }.compactMap { step in
      step.value.flatMap { try? accepted($0, key) }.map { (step.step, $0) }
    }
  }

  /// The expression that gives the values of a key to the objects of an old entity.
  private func setting(_ entity: Entity, _ key: Key, _ position: Int) -> (step: Int, expression: KeyExpression)? {
    let old = names.entities[position].entity
    let steps = names.settings.filter { $0.setting.map { old.isKind(of: $0.source.name) } ?? false }
    guard let step = mostSpecific(steps, entity, key.name), let setting = step.setting else { return nil }
    return (step.step, setting.expression)
  }

  /// `former` is the index of the old key with the values.
  private mutating func source(
    of key: Key, _ former: Int?, at site: MigrationSite, _ place: String, _ position: Int, isConverted: Bool
  ) -> Column.Source {
    guard let former else { return .fresh }
    let before = names.entities[position].entity.keys[former]
    guard let storage = before.storage else { return .fresh }
    guard !isConverted, let old = before.shape, let shape = key.shape, old != shape else {
      return .carried(storage: storage, before)
    }
    let conflict = site.with(.shape, "\(old) becomes \(shape)", remedy: "`convert \(place)`")
    add(conflict)
    return .conflicting(storage: storage, conflict)
  }

  /// The topmost of the old ancestors with the key at an index that the new entity has as ancestors still: a step that
  /// names it is for this entity too.
  private func highestHolder(of index: Int, named name: String, from position: Int) -> String {
    var highest = entities[position]
    while let parent = highest.old.parent.flatMap(old.entity(named:)), parent.keys.indices.contains(index),
      names.entities[parent.index].keys[index] == name, let new = entities[parent.index].new,
      entities[position].new?.isKind(of: new.name) == true
    {
      highest = entities[parent.index]
    }
    return highest.name
  }

  /// The step for a key that names the lowest of the entities that it concerns; of several, the last.
  private func mostSpecific(
    _ steps: [EvolvingNames.KeyStep], _ entity: Entity, _ key: String
  ) -> EvolvingNames.KeyStep? {
    steps.filter { $0.key == key && entity.isKind(of: $0.entity) }
      .max { (depth(of: $0.entity), $0.step) < (depth(of: $1.entity), $1.step) }
  }

  private func depth(of entity: String) -> Int { new.entity(named: entity)?.lineage.count ?? 0 }
}

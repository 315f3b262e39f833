import KeyValueModel
import KeyValueObserving
import Store

/// The requests of clients to change the cells of an open stream. Each returns what the cells receive as a result.
extension CellStream {
  /// Binds cells as the bindings say, and, with `replacingAll`, ends the other cells: all or nothing. Then a missing
  /// object is not an error: its cell is told `gone`.
  func bind(
    _ bindings: [(name: String, binding: CellBinding)], replacingAll: Bool, _ prepared: [Query: PreparedQuery],
    _ publication: inout Publication
  ) throws(Problem) -> CellUpdate {
    let bound = Set(bindings.map(\.name))
    let present = replacingAll ? [] : Set(cells.byName.keys)
    guard present.union(bound).count <= services.limits.cells else {
      throw Problem(.tooManyCells, "a stream has at most \(services.limits.cells) cells")
    }
    var targets: [CellTarget] = []
    for (_, binding) in bindings {
      targets.append(
        try services.target(of: binding, prepared, for: client, publication, toleratesMissing: replacingAll))
    }
    try evaluate(&targets, of: bindings, publication)
    return try services.holding(targets, for: client, &publication) { publication throws(Problem) in
      try makeRoom(for: targets, of: bindings, replacingAll: replacingAll)
      if replacingAll { end(cells.byName.keys.filter { !bound.contains($0) }, &publication) }
      var update = makeUpdate()
      for ((name, binding), target) in zip(bindings, targets) {
        rebind(name, to: binding, target, &publication, &update)
      }
      reservePending()
      return update
    }
  }

  /// Reserves memory for cells that are bound to something else, in place of what they have. Throws `overloaded` before
  /// anything is changed.
  private func makeRoom(
    for targets: [CellTarget], of bindings: [(name: String, binding: CellBinding)], replacingAll: Bool
  ) throws(Problem) {
    var weight = replacingAll ? 0 : cells.weight + cells.pendingBytes
    for ((name, binding), target) in zip(bindings, targets) {
      weight += binding.weight(showing: target) + (cells[name]?.formerWhenRebound?.weight ?? 0)
      if !replacingAll { weight -= cells[name]?.wholeWeight ?? 0 }
    }
    if weight > cells.weight { try reserve(weight) }
  }

  /// Returns the bindings of cells after the changes that bodies make. With `toleratesMissing`, null ends a cell, and a
  /// cell that does not exist is made; otherwise throws `unknown-cell`.
  func patched(
    _ bodies: [(name: String, body: Value)], toleratesMissing: Bool
  ) throws(Problem) -> (bindings: [(name: String, binding: CellBinding)], ended: [String]) {
    var bindings: [(name: String, binding: CellBinding)] = []
    var ended: [String] = []
    for (name, body) in bodies {
      if toleratesMissing, body.isNull {
        ended.append(name)
      } else if toleratesMissing, cells[name] == nil {
        bindings.append((name, try CellBinding(body, for: viewer)))
      } else {
        var binding = try require(name).binding
        try binding.apply(body)
        bindings.append((name, binding))
      }
    }
    return (bindings, ended)
  }

  /// Changes the members of cells' bindings that the bodies name: all or nothing. With `toleratesMissing`, a missing
  /// object is not an error: its cell is told `gone`.
  func patch(
    _ bodies: [(name: String, body: Value)], toleratesMissing: Bool, _ prepared: [Query: PreparedQuery],
    _ publication: inout Publication
  ) throws(Problem) -> CellUpdate {
    let (bindings, ended) = try patched(bodies, toleratesMissing: toleratesMissing)
    let names = Set(cells.byName.keys).subtracting(ended).union(bindings.map(\.name))
    guard names.count <= services.limits.cells else {
      throw Problem(.tooManyCells, "a stream has at most \(services.limits.cells) cells")
    }
    let changed = Dictionary(uniqueKeysWithValues: bodies.map { ($0.name, $0.body) })
    var targets: [CellTarget] = []
    for (name, binding) in bindings {
      targets.append(
        hasLostUnseen(name, binding)
          ? CellTarget()
          : try services.target(of: binding, prepared, for: client, publication, toleratesMissing: toleratesMissing))
    }
    try evaluate(&targets, of: bindings, publication)
    return try services.holding(targets, for: client, &publication) { publication throws(Problem) in
      try makeRoom(for: targets, of: bindings, replacingAll: false)
      end(ended, &publication)
      var update = makeUpdate()
      for ((name, binding), target) in zip(bindings, targets) {
        if hasLostUnseen(name, binding), !CellBinding.namesObject(changed[name] ?? .null) {
          // It observes nothing any more, and has still to receive `gone`.
          var hidden = binding
          hidden.isVisible = cells[name]?.binding.isVisible ?? false
          cells[name]?.binding = hidden
          setVisibility(binding.isVisible, name, publication, &update)
        } else if cells[name]?.query != nil, target.query != nil {
          requery(name, to: binding, target, &publication, &update)
        } else {
          rebind(name, to: binding, target, &publication, &update)
        }
      }
      reservePending()
      return update
    }
  }

  /// Returns true if a cell that only comes into view has lost its object meanwhile, so that it receives `gone`.
  private func hasLostUnseen(_ name: String, _ binding: CellBinding) -> Bool {
    guard let cell = cells[name] else { return false }
    return binding.object == cell.binding.object && binding.query == nil && cell.pending?.gone != nil
  }

  /// The work that bindings need before they are made.
  struct BindingWork {
    /// The observations whose values are needed: those of cells that begin to show something, and of cells that leave
    /// the screen or come back to it.
    var evaluated: [Observation] = []
    /// The observations that are to be registered.
    var registered: [Observation] = []
  }

  /// Returns the work that bindings need in a state.
  func work(
    for bindings: [(name: String, binding: CellBinding)], in state: ModelState
  ) throws(Problem) -> BindingWork {
    var work = BindingWork()
    for (name, binding) in bindings {
      let isShown = isShowing(binding, in: name)
      if isShown, cells[name]?.binding.isVisible == binding.isVisible { continue }
      let observations =
        isShown
        ? cells[name]?.observations ?? [] : try services.observations(of: binding, state, mayBeGone: true)
      let isTold = binding.isVisible && !cells.isSuspended
      if !isShown { work.registered += observations }
      work.evaluated += observations.filter {
        isTold ? isShown || $0.options.contains(.initial) : $0.options.contains(.old)
      }
      // A cell that is owed what it missed may be told its state, whatever its options are.
      if isTold, !isShown, cells[name]?.hasMissed == true { work.evaluated += observations }
    }
    return work
  }

  /// Returns an empty update for cells, limited to the size of an event.
  func makeUpdate() -> CellUpdate { CellUpdate(limit: services.limits.eventBytes) }

  /// Evaluates the first states of cells that are bound to something else. Throws `too-many-bytes` if they are more
  /// than one event may hold; nothing has been changed by then.
  private func evaluate(
    _ targets: inout [CellTarget], of bindings: [(name: String, binding: CellBinding)],
    _ publication: borrowing Publication
  ) throws(Problem) {
    guard !cells.isSuspended else { return }
    let state = publication.snapshot.state
    var update = makeUpdate()
    for (index, (name, binding)) in bindings.enumerated() {
      guard binding.isVisible, !isShowing(binding, in: name) else { continue }
      if let query = targets[index].query {
        let result = targets[index].finished?.result ?? publication.queries.result(of: query)
        let context = binding.context?.text
        if let result {
          update.add(QueryNotification(cell: name, context: context, body: .results(result, state, isInitial: true)))
        }
      } else if binding.options.contains(.initial) {
        let first = update.initial.count
        update.addInitial(targets[index].observations, of: name, in: values?.reader(of: state) ?? state)
        targets[index].initial = Array(update.initial[first...])
      }
    }
    var copy = cells
    guard !update.isShort, copy.encode(update, at: publication.snapshot.revision, services.encoder).isTooLong else {
      return
    }
    throw Problem(
      .tooManyBytes,
      "the cells would begin with more than the \(services.limits.eventBytes) bytes of streams.eventBytes: "
        + "bind fewer at once, or fewer keys or rows")
  }

  /// Returns true if a cell already has this binding, on screen or not.
  private func isShowing(_ binding: CellBinding, in name: String) -> Bool {
    guard let former = cells[name]?.binding else { return false }
    var binding = binding
    binding.isVisible = former.isVisible
    return binding == former
  }

  /// Returns true if a cell has already lost the object that a binding names, and otherwise has this binding.
  private func isLost(_ binding: CellBinding, in name: String) -> Bool {
    guard let cell = cells[name], let lost = cell.lost, lost.object == binding.object else { return false }
    var binding = binding
    binding.object = cell.binding.object
    return isShowing(binding, in: name)
  }

  /// Takes away the object of a cell that is bound to one that does not exist: the cell receives `gone`, if it receives
  /// anything now.
  func lose(
    _ name: String, _ object: Reference?, _ publication: borrowing Publication, _ update: inout CellUpdate
  ) {
    guard let object, var cell = cells[name] else { return }
    let present = self.present(publication)
    cell.binding.object = nil
    cell.weight = cell.binding.weight(showing: CellTarget())
    cell.lost = LostObject(object: object, position: .state(at: present.revision))
    cell.refreshedAt = present.revision
    if cell.binding.isVisible, !cells.isSuspended {
      update.add(ObserverEvent.Gone(cell: name, object: object, context: cell.binding.context?.text))
    } else {
      cell.pause(at: present)
      cell.pending?.absorb([], gone: object)
    }
    cells[name] = cell
  }

  /// Registers the observations and the live query that a cell of a resumed stream had.
  func registerAgain(_ name: String, _ target: CellTarget, _ publication: inout Publication) {
    guard let cell = cells[name], cell.binding.object != nil || cell.query != nil else { return }
    publication.observers.add(target.observations, of: observer, cell: name, in: publication.snapshot.state)
    cells[name]?.observations = target.observations
    guard let query = target.query else { return }
    publication.watch(query, QueryObserver(id: observer, cell: name), target.finished)
  }

  /// Ends cells.
  func end(_ names: some Sequence<String>, _ publication: inout Publication) {
    for name in names {
      unregister(name, &publication)
      cells[name] = nil
    }
  }

  /// Ends the observations and the live query of a cell.
  private func unregister(_ name: String, _ publication: inout Publication) {
    publication.observers.remove(observer, cell: name)
    publication.queries.remove(QueryObserver(id: observer, cell: name))
  }

  /// Binds a cell: ends the old observations before it starts the new ones. If the cell already has the binding, only
  /// its visibility changes.
  private func rebind(
    _ name: String, to binding: CellBinding, _ target: CellTarget, _ publication: inout Publication,
    _ update: inout CellUpdate
  ) {
    let former = cells[name]
    if isShowing(binding, in: name) || (target.missing != nil && isLost(binding, in: name)) {
      return setVisibility(binding.isVisible, name, publication, &update)
    }
    // The changes that a cell off screen has missed are not lost when only its options or its context change: it
    // receives the state instead.
    let isOwed = former?.isOwedInitial == true || former?.pending?.commits ?? 0 > 0
    unregister(name, &publication)
    cells[name] = Cell(binding: binding, former: former?.formerWhenRebound, told: former?.told ?? 0)
    if let missing = target.missing { return lose(name, missing, publication, &update) }
    register(
      name, target, sendsInitial: true, isForced: isOwed && former?.binding.object == binding.object, &publication,
      &update)
  }

  /// Begins the observations or the live query of a cell, and adds its first state to the update, if it receives that
  /// now.
  ///
  /// `sendsInitial` is false for a stream that resumes: its cells received their first state before. `isForced` sends
  /// the first state even if the binding does not ask for it.
  func register(
    _ name: String, _ target: CellTarget, sendsInitial: Bool, isForced: Bool = false,
    _ publication: inout Publication, _ update: inout CellUpdate
  ) {
    guard var cell = cells[name] else { return }
    defer { cells[name] = cell }
    let snapshot = publication.snapshot
    cell.observations = target.observations
    cell.weight = cell.binding.weight(showing: target)
    publication.observers.add(target.observations, of: observer, cell: name, in: snapshot.state)
    cell.query = target.query
    cell.refreshedAt = snapshot.revision
    if let query = target.query {
      publication.watch(query, QueryObserver(id: observer, cell: name), target.finished)
    }
    let wantsInitial = isForced || target.query != nil || cell.binding.options.contains(.initial)
    guard cell.binding.isVisible, !cells.isSuspended else {
      // A cell that was bound off screen may have missed something before its stream resumed, so it receives its state.
      // So does one that is bound while its values cannot be computed as fast as they change.
      let isOwed = !sendsInitial || wantsInitial || (values == nil && cells.isSuspended)
      cell.isOwedInitial = !target.isEmpty && isOwed
      cell.pause(at: present(publication))
      return
    }
    guard sendsInitial, wantsInitial else { return }
    if let initial = target.initial {
      initial.forEach { update.addInitial($0) }
    } else {
      update.addInitial(target.observations, of: name, in: present(publication).reader)
    }
    if let query = target.query, let result = publication.queries.result(of: query) {
      update.add(
        QueryNotification(
          cell: name, context: cell.binding.context?.text, body: .results(result, snapshot.state, isInitial: true)))
    }
  }

  /// Replaces the query of a cell, which receives the changes from the rows that it has to the new ones.
  private func requery(
    _ name: String, to binding: CellBinding, _ target: CellTarget, _ publication: inout Publication,
    _ update: inout CellUpdate
  ) {
    guard var cell = cells[name], let former = cell.query, let query = target.query else { return }
    let snapshot = publication.snapshot
    let isChanged = former != query
    let missed =
      cell.missed
      ?? publication.queries.result(of: former).map { MissedContents(shown: $0, since: snapshot.revision) }
    if isChanged {
      let watcher = QueryObserver(id: observer, cell: name)
      publication.queries.remove(watcher)
      publication.queries.watch(query, watcher)
      cell.query = query
    }
    let wasPaused = cell.isPaused
    if !wasPaused, !binding.isVisible { cell.pausedAt = snapshot.revision }
    cell.binding = binding
    cell.weight = binding.weight(showing: target)
    if wasPaused || !binding.isVisible {
      let present = self.present(publication)
      cell.pause(at: present)
      if !cell.isOwedInitial {
        cell.missed = missed
        if isChanged { cell.missed?.isRequeried = true }
      } else if isChanged {
        cell.oweState(at: snapshot.revision)
      }
      if binding.isVisible, !cells.isSuspended { cell.resume(as: name, at: present, services.encoder, &update) }
    } else if isChanged, let missed, let result = publication.queries.result(of: query) {
      let content = QueryContent(
        from: missed.shown, at: missed.since, to: result, in: snapshot.state, at: snapshot.revision)
      update.add(
        QueryNotification(
          cell: name, context: binding.context?.text, body: .content(services.encoder.encoded(content))))
      cell.refreshedAt = snapshot.revision
    }
    cells[name] = cell
  }

  /// Hides a cell, or shows it again and adds what it missed as one change. In a suspended stream the cell receives
  /// that later, with the rest.
  private func setVisibility(
    _ isVisible: Bool, _ name: String, _ publication: borrowing Publication, _ update: inout CellUpdate
  ) {
    guard var cell = cells[name], cell.binding.isVisible != isVisible else { return }
    cell.binding.isVisible = isVisible
    let present = self.present(publication)
    if !isVisible {
      if !cell.isPaused { cell.pausedAt = present.revision }
      cell.pause(at: present)
    } else if !cells.isSuspended {
      cell.resume(as: name, at: present, services.encoder, &update)
    }
    cells[name] = cell
  }
}

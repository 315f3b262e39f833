import KeyValueModel
import OrderedCollections

/// Puts the objects of a file into an order in which nothing is named before it is there.
///
/// Mutable only in `plan`, which is called once for each batch, from one task. What a batch cannot do yet waits: an
/// object for those that it cannot be made without, a relationship for its own object and all that it names. A to-many
/// is set as a whole when all its members are there, which leaves it in the order of the line whatever came before.
/// It knows of the server only what its callers give.
struct ImportPlanner: Sendable {
  private let limits: ImportLimits
  private var rows = DependencyQueue<Reference, ObjectLine>()
  private var links = DependencyQueue<ImportLink.Name, ImportLink>()
  private var heldBytes = 0

  init(limits: ImportLimits = ImportLimits()) {
    self.limits = limits
  }

  var heldReferences: Int { rows.weight + links.weight }

  /// Whether an object is known not to be there: it waits itself, or others wait for it.
  func isAbsent(_ reference: Reference) -> Bool {
    rows.item(reference) != nil || rows.isAwaited(reference) || links.isAwaited(reference)
  }

  /// What to do for the next objects of the file, no two of one name. `present` has those of the objects that they name
  /// that are there already. Throws with the line that cannot be planned; then there is nothing more to plan.
  mutating func plan(_ batch: [ObjectLine], present: Set<Reference>) throws(ImportError) -> [PlannedOperation] {
    var plan = Plan(present: present)
    for row in batch {
      if let earlier = rows.item(row.reference) {
        throw ImportError(
          line: row.line,
          reason: "\(row.reference) is in line \(earlier.line) too, where it waits for what it names")
      }
      // What an earlier line said of the object holds no longer.
      for key in row.values.members.keys + row.links.map(\.key) {
        links.remove(ImportLink.Name(owner: row.reference, key: key))
      }
      let missing = row.replaces ? [] : plan.missing(row.links.filter(\.isRequired))
      if missing.isEmpty {
        make(row, &plan)
      } else {
        hold(row, missing, plan)
      }
    }
    try checkCircles(batch)
    try checkLimits(batch)
    return plan.operations + LinkOperations.operations(plan.links)
  }

  /// What is still held at the end of the file: throws the first line that names what never came.
  func finish() throws(ImportError) {
    let held = rows.items.flatMap { row in row.links.filter(\.isRequired).map { ($0, rows.missing(row.reference)) } }
    let named = held + links.items.map { ($0, links.missing($0.name)) }
    let mistakes = named.compactMap { link, missing -> ImportError? in
      // An object that waits itself is in the file; what it waits for is the mistake.
      guard let target = link.targets.first(where: { missing.contains($0) && rows.item($0) == nil }) else { return nil }
      return ImportError(
        line: link.line, reason: "\(link.key) names \(target), which is neither in the file nor on the server")
    }
    if let first = mistakes.min(by: { ($0.line, $0.reason) < ($1.line, $1.reason) }) { throw first }
  }

  // MARK: Making and holding

  /// A batch's plan in the making.
  private struct Plan {
    let present: Set<Reference>
    var made: Set<Reference> = []
    var operations: [PlannedOperation] = []
    /// The relationships that can be set once all of `operations` are done.
    var links: [ImportLink] = []

    /// What these relationships name that is not there, the object itself left out.
    func missing(_ links: [ImportLink]) -> Set<Reference> {
      var missing: Set<Reference> = []
      for link in links {
        for target in link.targets where target != link.owner && !present.contains(target) && !made.contains(target) {
          missing.insert(target)
        }
      }
      return missing
    }

    /// Whether an object can be made with this relationship. What names objects of the same plan is set after all of
    /// them are made, in the order of the lines: a to-one appends to the other side.
    func isCreated(with link: ImportLink) -> Bool {
      link.isRequired || link.targets.allSatisfy { $0 == link.owner || present.contains($0) }
    }
  }

  /// Makes an object, and those that waited for it and for nothing else, in the order of their lines.
  private mutating func make(_ row: ObjectLine, _ plan: inout Plan) {
    let later = row.replaces ? row.links : row.links.filter { !plan.isCreated(with: $0) }
    var ready = [(row: row, wasHeld: false)]
    while let (row, wasHeld) = ready.popLast() {
      plan.operations += operations(row, wasHeld: wasHeld, plan)
      plan.made.insert(row.reference)
      plan.links += links.arrive(row.reference)
      let released = rows.arrive(row.reference)
      for row in released { heldBytes -= row.bytes }
      ready += released.sorted { $0.line > $1.line }.map { ($0, true) }
    }
    for link in later { place(link, plan.missing([link]), &plan) }
  }

  private func operations(_ row: ObjectLine, wasHeld: Bool, _ plan: Plan) -> [PlannedOperation] {
    func operation(_ kind: PlannedOperation.Kind) -> PlannedOperation {
      var operation = PlannedOperation(line: row.line, object: row.reference, kind: kind)
      if operation.isRow { operation.lifetime = row.lifetime }
      return operation
    }

    var values = row.values
    if row.replaces {
      // A patch would merge documents, so they are set.
      return [operation(.patch(values))] + row.documents.members.map { operation(.set(key: $0, $1)) }
    }
    for (name, value) in row.documents.members { values[name] = value }
    // Of an object that was held, everything but what it cannot be made without is among the links that were held.
    for link in row.links where link.isRequired || (!wasHeld && plan.isCreated(with: link)) {
      values[link.key] = link.value
    }
    return [operation(.create(values))]
  }

  private mutating func place(_ link: ImportLink, _ missing: Set<Reference>, _ plan: inout Plan) {
    if missing.isEmpty {
      plan.links.append(link)
    } else {
      links.add(link, named: link.name, weight: link.targets.count, missing: missing)
    }
  }

  /// Lets an object wait, and all that it names besides for the object too.
  private mutating func hold(_ row: ObjectLine, _ missing: Set<Reference>, _ plan: Plan) {
    rows.add(row, named: row.reference, weight: row.links.count { $0.isRequired }, missing: missing)
    heldBytes += row.bytes
    for link in row.links where !link.isRequired {
      let missing = plan.missing([link]).union([link.owner])
      links.add(link, named: link.name, weight: link.targets.count, missing: missing)
    }
  }

  // MARK: What cannot be planned

  private func checkLimits(_ batch: [ObjectLine]) throws(ImportError) {
    guard let line = batch.last?.line else { return }
    if heldReferences > limits.heldReferences {
      throw ImportError(
        line: line,
        reason: "more than \(limits.heldReferences) references wait for objects further down; "
          + "--held-references raises the limit, and a file where objects stand before those that name them needs none")
    }
    if heldBytes > limits.heldBytes {
      throw ImportError(
        line: line,
        reason: "more than \(limits.heldBytes) bytes of objects wait for objects further down that they cannot be made "
          + "without; --held-bytes raises the limit")
    }
  }

  /// Looks for a circle of objects none of which can be made first. The last of them is in the batch.
  private func checkCircles(_ batch: [ObjectLine]) throws(ImportError) {
    var seen: Set<Reference> = []
    for row in batch where rows.item(row.reference) != nil && !seen.contains(row.reference) {
      var path: [(row: ObjectLine, rest: ArraySlice<ImportLink>)] = []
      var onPath: Set<Reference> = []
      var next: ObjectLine? = row
      while true {
        if let row = next {
          seen.insert(row.reference)
          onPath.insert(row.reference)
          path.append((row, row.links.filter(\.isRequired)[...]))
          next = nil
        }
        guard let link = path[path.count - 1].rest.popFirst() else {
          onPath.remove(path.removeLast().row.reference)
          if path.isEmpty { break }
          continue
        }
        guard let target = link.targets.first, let held = rows.item(target), target != link.owner else { continue }
        if onPath.contains(target) {
          throw circle(path.drop { $0.row.reference != target }.map(\.row))
        }
        if !seen.contains(target) { next = held }
      }
    }
  }

  private func circle(_ rows: [ObjectLine]) -> ImportError {
    var clauses: [String] = []
    for (row, next) in zip(rows, rows.dropFirst() + rows.prefix(1)) {
      let key = row.links.first { $0.isRequired && $0.targets == [next.reference] }?.key ?? ""
      clauses.append("\(row.reference) (line \(row.line)) needs \(next.reference) as its \(key)")
    }
    return ImportError(
      line: rows.map(\.line).max() ?? 0, reason: "none of these can be made first: " + clauses.joined(separator: ", "))
  }
}

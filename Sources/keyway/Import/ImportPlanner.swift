import KeyValueModel
import OrderedCollections

/// Orders the objects of a file so that no object is named before it exists.
///
/// Mutable only in `plan`, which is called once for each batch, from one task. What a batch cannot do yet waits: an
/// object waits for those that it requires, a relationship for its own object and all that it names. A to-many is set
/// as a whole when all its members exist, which leaves it in the order of the line whatever came before. It knows of
/// the server only what its callers pass.
struct ImportPlanner: Sendable {
  private let limits: ImportLimits
  private var rows = DependencyQueue<Reference, ObjectLine>()
  private var links = DependencyQueue<ImportLink.Name, ImportLink>()
  private var heldBytes = 0

  init(limits: ImportLimits = ImportLimits()) {
    self.limits = limits
  }

  var heldReferences: Int { rows.weight + links.weight }

  /// Returns true if an object is known not to exist: it waits itself, or others wait for it.
  func isAbsent(_ reference: Reference) -> Bool {
    rows.item(reference) != nil || rows.isAwaited(reference) || links.isAwaited(reference)
  }

  /// Returns the operations for the next objects of the file, no two of one reference. `present` has the existing ones
  /// among the objects that they name. Throws with the line that cannot be planned. Nothing more can be planned then.
  mutating func plan(_ batch: [ObjectLine], present: Set<Reference>) throws(ImportError) -> [PlannedOperation] {
    var plan = Plan(present: present)
    for row in batch {
      if let earlier = rows.item(row.reference) {
        throw ImportError(
          line: row.line,
          reason: "\(row.reference) is in line \(earlier.line) too, where it waits for what it names")
      }
      // This line replaces the relationships of an earlier line for the object.
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

  /// Checks what is still held at the end of the file. Throws with the first line that names an object that never came.
  func finish() throws(ImportError) {
    let held = rows.items.flatMap { row in row.links.filter(\.isRequired).map { ($0, rows.missing(row.reference)) } }
    let named = held + links.items.map { ($0, links.missing($0.name)) }
    let mistakes = named.compactMap { link, missing -> ImportError? in
      // An object that waits itself is in the file: the error is in what it waits for.
      guard let target = link.targets.first(where: { missing.contains($0) && rows.item($0) == nil }) else { return nil }
      return ImportError(
        line: link.line, reason: "\(link.key) names \(target), which is neither in the file nor on the server")
    }
    if let first = mistakes.min(by: { ($0.line, $0.reason) < ($1.line, $1.reason) }) { throw first }
  }

  // MARK: Making and holding

  /// The plan of a batch, while it is made.
  private struct Plan {
    let present: Set<Reference>
    var made: Set<Reference> = []
    var operations: [PlannedOperation] = []
    /// The relationships to set after all of `operations`.
    var links: [ImportLink] = []

    /// Returns the objects that these relationships name and that do not exist, without their own object.
    func missing(_ links: [ImportLink]) -> Set<Reference> {
      var missing: Set<Reference> = []
      for link in links {
        for target in link.targets where target != link.owner && !present.contains(target) && !made.contains(target) {
          missing.insert(target)
        }
      }
      return missing
    }

    /// Returns true if an object can be created with this relationship. A relationship to objects of the same plan is
    /// set after all of them are created, in the order of the lines, since a to-one appends to the other side.
    func isCreated(with link: ImportLink) -> Bool {
      link.isRequired || link.targets.allSatisfy { $0 == link.owner || present.contains($0) }
    }
  }

  /// Creates an object, and those that waited only for it, in the order of their lines.
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
      // Documents are set, since a patch would merge them.
      return [operation(.patch(values))] + row.documents.members.map { operation(.set(key: $0, $1)) }
    }
    for (name, value) in row.documents.members { values[name] = value }
    // The relationships of a held object, except the required ones, are among the held links.
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

  /// Holds an object. Its other relationships wait for the object too.
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
          + "raise the limit with --held-references, or put objects before those that name them")
    }
    if heldBytes > limits.heldBytes {
      throw ImportError(
        line: line,
        reason: "more than \(limits.heldBytes) bytes of objects wait for objects further down that they cannot be made "
          + "without; --held-bytes raises the limit")
    }
  }

  /// Throws if there is a circle of objects of which none can be created first. The last of them is in the batch.
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

/// Items that wait for objects. Each is returned once, when the last object that it waits for has arrived.
private struct DependencyQueue<Name: Hashable & Sendable, Item: Sendable>: Sendable {
  private struct Entry: Sendable {
    let item: Item
    let weight: Int
    var missing: Set<Reference>
  }

  private var entries: [Name: Entry] = [:]
  /// The names of items by the object that they wait for, in the order of arrival. May include removed items.
  private var names: [Reference: [Name]] = [:]
  /// The total weight of the waiting items.
  private(set) var weight = 0

  /// The waiting items, in no order.
  var items: some Sequence<Item> { entries.values.lazy.map(\.item) }

  func item(_ name: Name) -> Item? { entries[name]?.item }

  /// Returns the objects that an item still waits for.
  func missing(_ name: Name) -> Set<Reference> { entries[name]?.missing ?? [] }

  /// Returns true if an item waits for an object, which therefore does not exist.
  func isAwaited(_ reference: Reference) -> Bool { names[reference] != nil }

  /// Adds an item that waits for at least one object. It replaces the item with the same name.
  mutating func add(_ item: Item, named name: Name, weight: Int, missing: Set<Reference>) {
    remove(name)
    entries[name] = Entry(item: item, weight: weight, missing: missing)
    self.weight += weight
    for reference in missing { names[reference, default: []].append(name) }
  }

  /// Removes the item with a name.
  mutating func remove(_ name: Name) {
    guard let entry = entries.removeValue(forKey: name) else { return }
    weight -= entry.weight
  }

  /// Records that an object exists. Returns the items that waited for nothing else.
  mutating func arrive(_ reference: Reference) -> [Item] {
    var released: [Item] = []
    for name in names.removeValue(forKey: reference) ?? [] {
      guard entries[name]?.missing.remove(reference) != nil, let entry = entries[name], entry.missing.isEmpty else {
        continue
      }
      released.append(entry.item)
      remove(name)
    }
    return released
  }
}

/// Makes the operations that set relationships between existing objects.
private enum LinkOperations {
  private struct Assertion: Hashable {
    let object: Reference
    let key: String
    let target: Reference
  }

  /// Returns the operations in the order of the lines. A to-one that the other side sets too is omitted: a to-many sets
  /// it with the order of its members, and of two to-ones the first is enough.
  static func operations(_ links: [ImportLink]) -> [PlannedOperation] {
    var said: Set<Assertion> = []
    for link in links where link.isToMany { said.formUnion(inverses(of: link)) }
    var operations: [PlannedOperation] = []
    // Links of one line stay in their order.
    for (_, link) in links.enumerated().sorted(by: { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }) {
      if !link.isToMany, let target = link.targets.first {
        if said.contains(Assertion(object: link.owner, key: link.key, target: target)) { continue }
        said.formUnion(inverses(of: link))
      }
      operations.append(PlannedOperation(line: link.line, object: link.owner, kind: .set(key: link.key, link.value)))
    }
    return operations
  }

  private static func inverses(of link: ImportLink) -> [Assertion] {
    guard let inverse = link.inverse else { return [] }
    return link.targets.map { Assertion(object: $0, key: inverse, target: link.owner) }
  }
}

/// One operation of a transaction, and the line that it comes from.
struct PlannedOperation: Hashable, Sendable {
  enum Kind: Hashable, Sendable {
    case create(JSONObject)
    case patch(JSONObject)
    case set(key: String, Value)
  }

  var line: Int
  var object: Reference
  var kind: Kind
  /// The lifetime of the object in seconds, if the operation creates or patches it. Nil leaves it out.
  var lifetime: Int64?

  /// True if this is the first operation of a line: the object exists after it.
  var isRow: Bool {
    if case .set = kind { return false }
    return true
  }

  /// The operation as JSON for the server.
  var json: Value {
    var members: JSONObject = ["object": .reference(object)]
    switch kind {
    case .create(let value): (members["op"], members["value"]) = (.string("create"), .object(value))
    case .patch(let value): (members["op"], members["value"]) = (.string("patch"), .object(value))
    case .set(let key, let value):
      (members["op"], members["keyPath"], members["value"]) = (.string("set"), .string(key), value)
    }
    members["lifetime"] = lifetime.map(Value.integer)
    return .object(members)
  }
}

/// Operations as the body of one transaction.
struct TransactionBody: Sendable {
  private static let head = Array("{\"operations\":[".utf8)
  private static let tail = Array("]}".utf8)

  private(set) var operations: [PlannedOperation] = []
  private(set) var bytes = head

  /// Returns the bodies of operations: one, or more if they would exceed a limit. The order of operations is kept, so
  /// each body is valid by itself. An operation larger than `maximumBytes` gets a body of its own.
  static func bodies(
    of operations: [PlannedOperation], maximumBytes: Int, maximumOperations: Int = ImportLimits.operations
  ) -> [TransactionBody] {
    var bodies: [TransactionBody] = []
    var body = TransactionBody()
    for operation in operations {
      var text: [UInt8] = []
      operation.json.appendJSON(to: &text)
      let isFull =
        body.bytes.count + text.count + 1 + tail.count > maximumBytes || body.operations.count >= maximumOperations
      if isFull, !body.operations.isEmpty {
        bodies.append(body.closed)
        body = TransactionBody()
      }
      if !body.operations.isEmpty { body.bytes.append(UInt8(ascii: ",")) }
      body.bytes += text
      body.operations.append(operation)
    }
    if !body.operations.isEmpty { bodies.append(body.closed) }
    return bodies
  }

  private var closed: TransactionBody {
    var body = self
    body.bytes += Self.tail
    return body
  }
}

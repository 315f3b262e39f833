/// The keys that an expression may read, as a tree of key paths.
package struct KeyReads: Sendable, Equatable {
  /// The reads below each key of an object. A key whose value itself is read has no children.
  package var children: [String: KeyReads] = [:]
  /// The reads of the elements: none or one.
  private var elementReads: [KeyReads] = []

  /// Creates a tree without reads.
  package init() {}

  /// The reads of each element of a list; nil if none is visited, and `{}` if elements are visited and none of their
  /// keys is read.
  package var elements: KeyReads? {
    get { elementReads.first }
    set { elementReads = newValue.map { [$0] } ?? [] }
  }

  /// True if neither keys nor elements are read.
  package var isEmpty: Bool { children.isEmpty && elementReads.isEmpty }

  /// Adds all that `other` reads.
  package mutating func merge(_ other: KeyReads) {
    children.merge(other.children) { mine, others in
      var both = mine
      both.merge(others)
      return both
    }
    guard let others = other.elements else { return }
    var both = elements ?? KeyReads()
    both.merge(others)
    elements = both
  }
}

extension KeyReads: CustomStringConvertible {
  /// The tree on one line, such as `{a, b{c}, list[{d}]}`, sorted.
  package var description: String {
    let parts = children.sorted { $0.key < $1.key }.map { key, reads in
      reads.isEmpty ? key : "\(key)\(reads.children.isEmpty ? "" : reads.ownDescription)\(reads.elementsDescription)"
    }
    return "{\(parts.joined(separator: ", "))}" + elementsDescription
  }

  private var ownDescription: String {
    var own = self
    own.elements = nil
    return own.description
  }

  private var elementsDescription: String { elements.map { "[\($0)]" } ?? "" }
}

/// Finds the key paths that an expression may read, by evaluating it with paths for values.
struct ReadsAnalysis {
  /// The possible origins of a value: places in the tree of reads, and the possible origins of the values within it.
  private struct Origins {
    var places: Set<Int> = []
    /// The possible origins of the elements of a list, or the values of a map, that the expression makes: none or one.
    var contents: [Origins] = []
  }

  /// The maximum number of key paths that an expression may read: `(c ? x.a : x.b)` twice reads four of `x`, and so on.
  private static let placeLimit = 1_024
  /// The maximum number of keys of a path.
  private static let depthLimit = 64

  /// A node of the tree of reads, in an array so that a place is a number.
  private struct Place {
    var children: [String: Int] = [:]
    var elements: Int?
    let depth: Int
  }

  private let names: NameTable
  private var tree = [Place(depth: 0)]
  private var isTooLarge = false
  private var locals: [Int: Origins] = [:]

  private init(_ names: NameTable) { self.names = names }

  /// Returns the key paths that `root` may read. Reads through comprehension variables that are bound outside of `root`
  /// are not included, except with `element`: then the keys of that variable are the root's.
  ///
  /// Returns nil if there are more paths, or longer ones, than an expression may read.
  static func reads(of root: ExpressionNode, _ names: NameTable, element: Int? = nil) -> KeyReads? {
    var analysis = ReadsAnalysis(names)
    if let element { analysis.locals[element] = Origins(places: [0]) }
    _ = analysis.origins(of: root)
    return analysis.isTooLarge ? nil : analysis.reads(at: 0)
  }

  private func reads(at place: Int) -> KeyReads {
    var reads = KeyReads()
    reads.children = tree[place].children.mapValues { self.reads(at: $0) }
    reads.elements = tree[place].elements.map { self.reads(at: $0) }
    return reads
  }

  private mutating func child(_ name: String, of place: Int) -> Int {
    if let known = tree[place].children[name] { return known }
    let child = newPlace(below: place)
    tree[place].children[name] = child
    return child
  }

  private mutating func elements(of place: Int) -> Int {
    if let known = tree[place].elements { return known }
    let elements = newPlace(below: place)
    tree[place].elements = elements
    return elements
  }

  /// Returns a new place, or an existing one once there are too many.
  private mutating func newPlace(below place: Int) -> Int {
    let depth = tree[place].depth + 1
    isTooLarge = isTooLarge || tree.count >= ReadsAnalysis.placeLimit || depth > ReadsAnalysis.depthLimit
    if !isTooLarge { tree.append(Place(depth: depth)) }
    return tree.count - 1
  }

  private mutating func selecting(_ name: String, _ origins: Origins) -> Origins {
    var result = union(origins.contents)
    for place in origins.places { result.places.insert(child(name, of: place)) }
    return result
  }

  private mutating func visiting(_ origins: Origins) -> Origins {
    var result = union(origins.contents)
    for place in origins.places { result.places.insert(elements(of: place)) }
    return result
  }

  private func union(_ all: [Origins]) -> Origins {
    guard all.count != 1 else { return all[0] }
    var union = Origins()
    for origins in all { union.places.formUnion(origins.places) }
    let contents = all.flatMap(\.contents)
    if !contents.isEmpty { union.contents = [self.union(contents)] }
    return union
  }

  /// Returns the possible origins of the value of `node`, and records what is read on the way.
  private mutating func origins(of node: ExpressionNode) -> Origins {
    switch node.kind {
    case .literal, .collectionFunction: return Origins()
    case .identifier, .select: return reference(node)
    case .has(let operand, let field):
      let origins = origins(of: operand)
      _ = selecting(field, origins)
      return Origins()
    case .index(let operand, let index):
      _ = origins(of: index)
      let origins = origins(of: operand)
      return isMap(operand) ? union(origins.contents) : visiting(origins)
    case .conditional(let condition, let first, let second):
      _ = origins(of: condition)
      return union([origins(of: first), origins(of: second)])
    case .list(let elements): return Origins(contents: [union(elements.map { origins(of: $0) })])
    case .map(let entries):
      return Origins(contents: [union(entries.flatMap { [origins(of: $0.key), origins(of: $0.value)] })])
    case .comprehension(let macro): return comprehension(node, macro)
    case .binary(.add, let left, let right): return union([origins(of: left), origins(of: right)])
    case .call("dyn", target: nil, let arguments): return union(arguments.map { origins(of: $0) })
    case .call, .unary, .binary, .all, .any:
      for child in node.kind.children { _ = origins(of: child) }
      return Origins()
    }
  }

  private func isMap(_ node: ExpressionNode) -> Bool {
    if case .map = names.types[node.id] { true } else { false }
  }

  private mutating func reference(_ node: ExpressionNode) -> Origins {
    switch names.meanings[node.id] {
    case .local(let number): return locals[number] ?? Origins()
    case .variable(Expression.rootVariable, _): return Origins(places: [0])
    case .variable(let name, _):
      let place = name.split(separator: ".").reduce(0) { child(String($1), of: $0) }
      return Origins(places: [place])
    case .type, .nothing: return Origins()
    case .field, .function, .binds, nil: break
    }
    guard case .select(let operand, let field) = node.kind else { return Origins() }
    return selecting(field, origins(of: operand))
  }

  private mutating func comprehension(_ node: ExpressionNode, _ macro: Comprehension) -> Origins {
    let range = origins(of: macro.range)
    if case .binds(let number)? = names.meanings[node.id] {
      locals[number] = isMap(macro.range) ? union(range.contents) : visiting(range)
    }
    if let predicate = macro.predicate { _ = origins(of: predicate) }
    let transformed = macro.transform.map { origins(of: $0) }
    switch macro.function {
    case .map: return Origins(contents: [transformed ?? Origins()])
    case .filter: return range
    case .all, .exists, .existsOne: return Origins()
    }
  }
}

/// The keys that an expression may read, as a tree of key paths.
package struct KeyReads: Sendable, Equatable {
  /// What is read below each key of an object. A key that is itself a value has no children.
  package var children: [String: KeyReads] = [:]
  /// Zero or one: what is read of the elements.
  private var elementReads: [KeyReads] = []

  /// Reads nothing.
  package init() {}

  /// What is read of each element of a list; nil when none is visited. `{}` when elements are visited and none of their
  /// keys is read.
  package var elements: KeyReads? {
    get { elementReads.first }
    set { elementReads = newValue.map { [$0] } ?? [] }
  }

  /// Whether neither keys nor elements are read.
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

extension ModelState {
  /// Every object with its name, in no order, without a copy of them.
  package var all: Objects { Objects(trees: extents.map(\.objects)) }

  /// The objects of a state, one entity after the other.
  package struct Objects: Sequence {
    fileprivate let trees: [RecordTree]

    /// Begins with the first entity.
    package func makeIterator() -> Iterator { Iterator(trees: trees[...]) }

    /// Goes through the objects.
    package struct Iterator: IteratorProtocol {
      fileprivate var trees: ArraySlice<RecordTree>
      private var objects = RecordTree().makeIterator()

      fileprivate init(trees: ArraySlice<RecordTree>) {
        self.trees = trees
      }

      /// The next object.
      package mutating func next() -> (key: Reference, value: ObjectRecord)? {
        while true {
          if let object = objects.next() { return object }
          guard let tree = trees.popFirst() else { return nil }
          objects = tree.makeIterator()
        }
      }
    }
  }
}

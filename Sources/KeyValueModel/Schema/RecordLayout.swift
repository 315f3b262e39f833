/// Where an object's keys are, and what they are called in JSON, without a reference in it that threads would have to
/// count: reading objects is the hottest path there is.
final class RecordLayout: Sendable {
  /// One key.
  struct Column: Sendable {
    /// Where the value stands in a record; -1 for computed keys.
    let storage: Int32
    /// Where the path of a computed key begins and ends in `paths`.
    let pathStart: Int32
    let pathEnd: Int32
    /// Where `,"name":` begins and ends in `names`.
    let nameStart: Int32
    let nameEnd: Int32
  }

  let columns: [Column]
  let paths: [Int]
  let names: [UInt8]

  init(keys: [Key]) {
    var columns: [Column] = []
    var paths: [Int] = []
    var names: [UInt8] = []
    for key in keys {
      let (pathStart, nameStart) = (paths.count, names.count)
      if case .computed(let computed) = key.kind { paths += computed.path }
      names += Array(",\"\(key.name)\":".utf8)
      columns.append(
        Column(
          storage: Int32(key.storage ?? -1), pathStart: Int32(pathStart), pathEnd: Int32(paths.count),
          nameStart: Int32(nameStart), nameEnd: Int32(names.count)))
    }
    self.columns = columns
    self.paths = paths
    self.names = names
  }

  /// The path of a computed key.
  func path(of column: Column) -> ArraySlice<Int> { paths[Int(column.pathStart)..<Int(column.pathEnd)] }
}

/// Finds the entity of a reference by the bytes before its slash, without a string for them: every access to an object
/// begins with that.
struct EntityNames: Sendable {
  /// The names, by the index of their entities.
  private let names: [[UInt8]]
  /// Indexes of entities, each at the first free place from its name's hash on; -1 where there is none. At least half
  /// of the places are free.
  private let table: [Int]

  init(_ entities: [Entity]) {
    let names = entities.map { Array($0.name.utf8) }
    var width = 4
    while width < 2 * names.count { width *= 2 }
    var table = Array(repeating: -1, count: width)
    for (index, name) in names.enumerated() {
      var place = name.withUnsafeBufferPointer { Self.hash($0[...]) } & (width - 1)
      while table[place] >= 0 { place = (place + 1) & (width - 1) }
      table[place] = index
    }
    self.names = names
    self.table = table
  }

  /// The index of the entity that a reference names, nil where there is none.
  func index(of reference: Reference) -> Int? {
    let bytes = reference.text.utf8
    return bytes.withContiguousStorageIfAvailable(index) ?? Array(bytes).withUnsafeBufferPointer(index)
  }

  private func index(_ text: UnsafeBufferPointer<UInt8>) -> Int? {
    guard let slash = text.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    let name = text[..<slash]
    var place = Self.hash(name) & (table.count - 1)
    while table[place] >= 0 {
      if names[table[place]].elementsEqual(name) { return table[place] }
      place = (place + 1) & (table.count - 1)
    }
    return nil
  }

  /// FNV-1a. The names are the schema's, so that no client can choose them to collide.
  private static func hash(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int(hash ^ (hash >> 16))
  }
}

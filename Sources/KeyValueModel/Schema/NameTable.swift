/// Finds where a name stands in a list by its bytes, without a string for it: every access to an object begins with
/// the name of its entity, and every setting goes on with that of a key.
struct NameTable: Sendable {
  /// The names in their order.
  private let names: [[UInt8]]
  /// Indexes of names, each at the first free place from its name's hash on; -1 where there is none. At least half of
  /// the places are free.
  private let table: [Int]

  /// A table of names, none of them twice.
  init(_ texts: [String]) {
    let names = texts.map { Array($0.utf8) }
    var width = 4
    while width < 2 * names.count { width *= 2 }
    var table = Array(repeating: -1, count: width)
    for (index, name) in names.enumerated() {
      var place = name.withUnsafeBufferPointer(Self.hash) & (width - 1)
      while table[place] >= 0 { place = (place + 1) & (width - 1) }
      table[place] = index
    }
    self.names = names
    self.table = table
  }

  /// Where a name stands, nil where it is none of these.
  func index(of name: String) -> Int? {
    Self.withBytes(of: name, index)
  }

  /// The same for what stands before a byte in a text; nil also where that byte is not in it.
  func index(ofTextBefore end: UInt8, in text: String) -> Int? {
    Self.withBytes(of: text) { bytes in
      bytes.firstIndex(of: end).flatMap { index(UnsafeBufferPointer(rebasing: bytes[..<$0])) }
    }
  }

  private static func withBytes<Result>(of text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
    text.utf8.withContiguousStorageIfAvailable(body) ?? Array(text.utf8).withUnsafeBufferPointer(body)
  }

  private func index(_ name: UnsafeBufferPointer<UInt8>) -> Int? {
    var place = Self.hash(name) & (table.count - 1)
    while table[place] >= 0 {
      if Self.isEqual(names[table[place]], name) { return table[place] }
      place = (place + 1) & (table.count - 1)
    }
    return nil
  }

  private static func isEqual(_ left: [UInt8], _ right: UnsafeBufferPointer<UInt8>) -> Bool {
    guard left.count == right.count else { return false }
    for index in 0..<left.count where left[index] != right[index] { return false }
    return true
  }

  /// FNV-1a. The names are the schema's, so that no client can choose them to collide.
  private static func hash(_ bytes: UnsafeBufferPointer<UInt8>) -> Int {
    var hash: UInt32 = 2_166_136_261
    for byte in bytes { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
    return Int(hash ^ (hash >> 16))
  }
}

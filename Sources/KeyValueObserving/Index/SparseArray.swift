/// Values under numbers that are given out in rising order and seldom taken back, by pages of neighbours: a dictionary
/// of pages has a sixty-fourth of the entries that one of values has, and stays in a cache for longer.
///
/// Memory: a page for each that has a value.
struct SparseArray<Value> {
  private struct Page {
    private(set) var count = 0
    private var values = ContiguousArray<Value?>(repeating: nil, count: SparseArray.pageSize)

    subscript(index: Int) -> Value? {
      get { values[index] }
      set {
        count += (newValue == nil ? 0 : 1) - (values[index] == nil ? 0 : 1)
        values[index] = newValue
      }
    }
  }

  private static var pageSize: Int { 64 }

  private var pages: [UInt64: Page] = [:]

  /// No values.
  init() {}

  /// How many pages there are.
  var pageCount: Int { pages.count }

  /// The value of a number; nil where it has none.
  subscript(number: UInt64) -> Value? {
    get {
      let (page, index) = Self.place(of: number)
      return pages[page]?[index]
    }
    set {
      let (page, index) = Self.place(of: number)
      guard newValue != nil || pages[page] != nil else { return }
      pages[page, default: Page()][index] = newValue
      if newValue == nil, pages[page]?.count == 0 { pages[page] = nil }
    }
  }

  private static func place(of number: UInt64) -> (page: UInt64, index: Int) {
    let (page, index) = number.quotientAndRemainder(dividingBy: UInt64(pageSize))
    return (page, Int(index))
  }
}

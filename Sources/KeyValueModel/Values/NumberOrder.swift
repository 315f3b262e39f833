/// Numbers of both kinds in one order, exactly: no integer is rounded to a double on the way.
enum NumberOrder {
  /// How an integer stands to a double.
  static func ordering(of integer: Int64, to number: Double) -> Ordering {
    // Between these bounds, which are doubles, the whole part of a double is an Int64.
    if number >= 0x1p63 { return .ascending }
    guard number >= -0x1p63 else { return .descending }
    let whole = Int64(number)
    guard integer == whole else { return Ordering(integer, whole) }
    return Ordering(0, number - Double(whole))
  }

  /// How a double stands to an integer.
  static func ordering(of number: Double, to integer: Int64) -> Ordering {
    switch ordering(of: integer, to: number) {
    case .ascending: .descending
    case .same: .same
    case .descending: .ascending
    }
  }
}

import CEL

extension Value {
  /// The integer of 64 bits that a number is, however JSON has it: `1`, `1.0` and `1e0` alike. Nil where it has a
  /// fraction, is larger, or is known only about, and for anything but a number.
  package var wholeNumber: Int64? {
    switch self {
    case .integer(let integer): integer
    // A double stands for the shortest decimal that reads back as it, as everywhere.
    case .number(let number): ShortestDecimal(number).integer
    default: nil
    }
  }
}

/// The shortest decimal number that reads back as a double: `mantissa` × 10^`exponent`, without zeros at the end.
struct ShortestDecimal {
  let mantissa: Int64
  let exponent: Int

  private static let powers: [Double] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000]

  /// The decimal of `number`, which must be finite.
  init(_ number: Double) {
    // A decimal of at most 15 digits that reads back as the double is the only one, hence the shortest: the division of
    // two exact doubles is rounded once, as reading is.
    for (places, power) in ShortestDecimal.powers.enumerated() {
      let scaled = (number * power).rounded()
      guard scaled.magnitude < 1e15 else { break }
      if scaled / power == number {
        self.init(stripping: Int64(scaled), exponent: -places)
        return
      }
    }
    self.init(parsing: number.description)
  }

  private init(stripping mantissa: Int64, exponent: Int) {
    var (mantissa, exponent) = (mantissa, exponent)
    if mantissa == 0 { exponent = 0 }
    while exponent >= 0, mantissa != 0, mantissa % 10 == 0 {
      mantissa /= 10
      exponent += 1
    }
    (self.mantissa, self.exponent) = (mantissa, exponent)
  }

  /// Reads what the standard library prints: digits with a point, and perhaps an exponent.
  private init(parsing text: String) {
    var mantissa: Int64 = 0
    var exponent = 0
    var written = 0
    var isNegative = false
    var isExponentNegative = false
    var (seesPoint, seesExponent) = (false, false)
    for byte in text.utf8 {
      switch byte {
      case 0x2D:
        if seesExponent { isExponentNegative = true } else { isNegative = true }
      case 0x2E: seesPoint = true
      case 0x65: seesExponent = true
      case 0x30...0x39:
        if seesExponent {
          written = written * 10 + Int(byte - 0x30)
        } else if mantissa < 100_000_000_000_000_000 {
          mantissa = mantissa * 10 + Int64(byte - 0x30)
          if seesPoint { exponent -= 1 }
        } else if !seesPoint {
          exponent += 1
        }
      default: break
      }
    }
    while mantissa != 0, mantissa % 10 == 0 {
      mantissa /= 10
      exponent += 1
    }
    self.mantissa = isNegative ? -mantissa : mantissa
    self.exponent = mantissa == 0 ? 0 : exponent + (isExponentNegative ? -written : written)
  }
}

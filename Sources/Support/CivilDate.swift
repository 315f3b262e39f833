/// A day of the proleptic Gregorian calendar, to and from the number of days since 1970-01-01.
package struct CivilDate: Equatable, CustomStringConvertible {
  /// From the year 0, which is 1 BC.
  package let year: Int
  /// From 1.
  package let month: Int
  /// From 1.
  package let day: Int

  private static let daysPerEra = 146_097
  private static let daysBeforeEpoch = 719_468

  /// A day, or nil when there is none such.
  package init?(year: Int, month: Int, day: Int) {
    guard (1...12).contains(month), (1...CivilDate.length(ofMonth: month, year: year)).contains(day) else { return nil }
    (self.year, self.month, self.day) = (year, month, day)
  }

  /// The day that is `days` after 1970-01-01. Years count from March, so that a leap day is the last of its year.
  package init(daysSinceEpoch days: Int) {
    let shifted = days + CivilDate.daysBeforeEpoch
    let era = (shifted >= 0 ? shifted : shifted - CivilDate.daysPerEra + 1) / CivilDate.daysPerEra
    let dayOfEra = shifted - era * CivilDate.daysPerEra
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let marchMonth = (5 * dayOfYear + 2) / 153
    day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
    month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
    year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
  }

  /// How many days after 1970-01-01 it is.
  package var daysSinceEpoch: Int {
    let marchYear = month <= 2 ? year - 1 : year
    let era = (marchYear >= 0 ? marchYear : marchYear - 399) / 400
    let yearOfEra = marchYear - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return era * CivilDate.daysPerEra + dayOfEra - CivilDate.daysBeforeEpoch
  }

  /// The day as a `full-date` of RFC 3339: `2010-03-01`.
  package var description: String { "\(year.padded(to: 4))-\(month.padded(to: 2))-\(day.padded(to: 2))" }

  /// How many days of the year are before it.
  package var dayOfYear: Int {
    (1..<month).reduce(day - 1) { $0 + CivilDate.length(ofMonth: $1, year: year) }
  }

  private static func length(ofMonth month: Int, year: Int) -> Int {
    switch month {
    case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// An instant as a calendar and a clock show it, to the second.
package struct CivilTime {
  /// The day.
  package let date: CivilDate
  /// The day of the week; 0 is a Sunday.
  package let dayOfWeek: Int
  /// From 0 to 23.
  package let hour: Int
  /// From 0 to 59.
  package let minute: Int
  /// From 0 to 59.
  package let second: Int

  /// What is shown `seconds` after 1970-01-01T00:00:00, without leap seconds.
  package init(secondsSinceEpoch seconds: Int) {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let rest = seconds - days * 86_400
    date = CivilDate(daysSinceEpoch: days)
    // 1970-01-01 was a Thursday.
    dayOfWeek = ((days % 7) + 11) % 7
    (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60)
  }
}

/// An instant as a calendar and a clock show it.
struct CalendarParts {
  let date: CivilDate
  /// 0 is a Sunday.
  let dayOfWeek: Int
  let hour: Int
  let minute: Int
  let second: Int

  /// The parts of `timestamp` where clocks are `offsetSeconds` ahead of UTC.
  init(_ timestamp: ExpressionTimestamp, offsetSeconds: Int) {
    let local = Int(timestamp.seconds) + offsetSeconds
    let days = local >= 0 ? local / 86_400 : (local - 86_399) / 86_400
    let rest = local - days * 86_400
    date = CivilDate(daysSinceEpoch: days)
    // 1970-01-01 was a Thursday.
    dayOfWeek = ((days % 7) + 11) % 7
    (hour, minute, second) = (rest / 3_600, rest % 3_600 / 60, rest % 60)
  }
}

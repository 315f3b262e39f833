import ArgumentParser
import Testing

@testable import keyway

extension ImportTableTests {
  /// Makes a case of one date format.
  private static func dates(_ format: String, _ dates: (String, String)...) -> Case {
    let rows = dates.map { "\"\($0.0)\",\n" }
    let outcome = dates.enumerated().map { index, date in
      date.1.first?.isNumber == true && !date.1.hasPrefix(date.0 + " ")
        ? #"{"day":"\#(date.1)"}"#
        : "\(index + 2): day \(date.0) \(date.1.isEmpty ? "is not a date of the form \(format)" : date.1)"
    }
    return Case(
      "dates of the form \(format)", bytes: Array("day,\n\(rows.joined())".utf8),
      format.isEmpty ? "" : "--date-format \(format.replacing(" ", with: "_"))", outcome)
  }

  static let dates: [Case] = [
    values(
      "day", "RFC 3339 and what only lacks a letter of it", "", ("2022-06-25", #""2022-06-25""#),
      ("2022-06-25T11:03:50.052Z", #""2022-06-25T11:03:50.052Z""#),
      ("2022-06-25t11:03:50z", #""2022-06-25t11:03:50z""#),
      ("2022-06-25 11:03:50.052Z", #""2022-06-25T11:03:50.052Z""#),
      ("2022-06-25 11:03:50.052123+00", #""2022-06-25T11:03:50.052123+00:00""#),
      ("2022-06-25 11:03:50+0530", #""2022-06-25T11:03:50+05:30""#),
      ("2022-06-25 11:03:50-03:00", #""2022-06-25T11:03:50-03:00""#),
      ("2022-06-25 11:03:50 UTC", #""2022-06-25T11:03:50Z""#), ("2022-06-25T11:03+02", #""2022-06-25T11:03:00+02:00""#),
      ("2022-06-25 11:03:50,5 +0200", #""2022-06-25T11:03:50.5+02:00""#),
      ("2016-12-31 23:59:60Z", #""2016-12-31T23:59:60Z""#)),
    values(
      "day", "what is not known to be a moment or a day", "",
      ("2022-06-25 24:00:00Z", "is not a date of RFC 3339: 2022-06-25 24:00:00Z → \(otherDate)"),
      ("2022-02-30 11:03:50Z", "is not a date of RFC 3339: 2022-02-30 11:03:50Z → \(otherDate)"),
      ("10:30 PST", "is not a date of RFC 3339: 10:30 PST → \(otherDate)"),
      (
        "2022-06-25 11:03:50",
        "is not a date of RFC 3339: 2022-06-25 11:03:50 → "
          + "--date-format '%Y-%m-%d %H:%M:%S' reads 2022-06-25 11:03:50 as 2022-06-25T11:03:50Z"
      ),
      (
        "01/02/2000",
        "is not a date of RFC 3339: 01/02/2000 → --date-format '%m/%d/%Y' reads 01/02/2000 as 2000-01-02, "
          + "--date-format '%d/%m/%Y' reads 01/02/2000 as 2000-02-01"
      ),
      (
        "1656154830052",
        "is not a date of RFC 3339: 1656154830052 → --date-format '%Q' reads 1656154830052 as 2022-06-25T11:00:30.052Z"
      )),
    dates(
      "%Y-%m-%d", ("2000-2-3", "2000-02-03"), ("2004-02-29", "2004-02-29"),
      ("2001-02-29", "is not a day of the calendar"), ("2000-13-01", "is not a day of the calendar"),
      ("99-01-01", ""), ("2000-01-01x", "")),
    dates("%Y%m%d", ("20000203", "2000-02-03"), ("2000111", "")),
    dates("%d/%b/%y", ("31/Dec/68", "2068-12-31"), ("31/Dec/69", "1969-12-31"), ("1/mai/00", ""), ("1/Mai/00", "")),
    dates(
      "%e %B %Y", (" 1 june 2000", "2000-06-01"), ("1 Jun 2000", "2000-06-01"), ("1 May 2000", "2000-05-01"),
      ("1 Juno 2000", "")),
    dates("%b %d %Y", ("Jan 1 2000", "2000-01-01"), ("Jan  1  2000", "2000-01-01"), ("Foo 1 2000", "")),
    dates(
      "%Y-%j", ("2023-365", "2023-12-31"), ("2024-366", "2024-12-31"), ("2023-366", "is not a day of the calendar"),
      ("2023-0", "is not a day of the calendar")),
    dates(
      "%a %d %b %Y", ("Sat 25 Jun 2022", "2022-06-25"), ("Saturday 25 Jun 2022", "2022-06-25"),
      ("Sun 25 Jun 2022", "is not a Sunday")),
    dates(
      "%F %T", ("2000-01-01 09:30:00", "2000-01-01T09:30:00Z"), ("2000-01-01 24:00:00", "is not a time of day"),
      ("2000-01-01 09:60:00", "is not a time of day"), ("2016-12-31 23:59:60", "2016-12-31T23:59:60Z"),
      ("2016-12-30 23:59:60", "is not a leap second"), ("2000-01-01 09:30:61", "is not a time of day")),
    dates("%F %H", ("2000-01-01 9", "2000-01-01T09:00:00Z")),
    dates(
      "%m/%d/%Y %I:%M %p", ("1/2/2000 12:00 AM", "2000-01-02T00:00:00Z"), ("1/2/2000 12:30 pm", "2000-01-02T12:30:00Z"),
      ("1/2/2000 1:05PM", "2000-01-02T13:05:00Z"), ("1/2/2000 13:00 PM", "is not a time of day"),
      ("1/2/2000 0:30 AM", "is not a time of day")),
    dates(
      "%Y-%m-%dT%H:%M:%S.%f%z", ("2022-06-25T00:30:00.052+0200", "2022-06-24T22:30:00.052Z"),
      ("2022-06-25T00:30:00.5Z", "2022-06-25T00:30:00.5Z"), ("2022-06-25T00:30:00.5 -08:30", "2022-06-25T09:00:00.5Z"),
      ("2022-06-25T00:30:00.5+24", ""), ("2022-06-25T00:30:00.+01", ""),
      ("0000-01-01T00:00:00.0+01", "is not within the years 0 to 9999")),
    dates("%Y-%m-%d %H:%M UTC", ("2022-06-25 10:30 UTC", "2022-06-25T10:30:00Z"), ("2022-06-25 10:30 PST", "")),
    dates(
      "%s", ("0", "1970-01-01T00:00:00Z"), ("-1", "1969-12-31T23:59:59Z"),
      (
        "1656154830052",
        "is not within the years 0 to 9999 → --date-format '%Q' reads 1656154830052 as 2022-06-25T11:00:30.052Z"
      ), ("x", "")),
    dates("%s.%f", ("1.5", "1970-01-01T00:00:01.5Z"), ("-1.5", "is before 1970 with a fraction")),
    dates("%Q", ("1656154830052", "2022-06-25T11:00:30.052Z"), ("-1", "1969-12-31T23:59:59.999Z")),
    dates("%d.%m.%Y", ("NULL", "is not a date of the form %d.%m.%Y → \(null("NULL"))")),
  ]
  private static let otherDate = "--date-format names the format of the dates, such as '%d.%m.%Y'"

  @Test(
    "A format that is not of one date, or that cannot be read, is a usage error that says why",
    arguments: [
      ("%Y", "it names no day"), ("%Y-%m", "it names no day"), ("%m-%d", "it names no year"),
      ("%Y %d", "it names no month"),
      ("%H:%M", "it names no year"), ("%F %M", "it names no hour"), ("%F %H:%S", "%S requires %M"),
      ("%F %I:%M", "%I requires %p"), ("%F %H:%M %p", "%p requires %I"),
      ("%F %H %I %p", "it names the hour twice"),
      ("%F%z", "it names no hour"), ("%F %T %Z", "%Z is not supported, since IST, for example, names several zones"),
      ("%Y-W%W-%w", "%W is not supported: weeks have no dates"),
      ("%G-W%V-%u", "%G is not supported: it is the year of a week"),
      ("%c", "%c is not supported: it depends on the language"), ("%Ey-%m-%d", "%E is not supported"),
      ("%C%y-%m-%d", "%C is not supported; %Y reads a year of four digits"), ("%Y %y-%m-%d", "it names the year twice"),
      ("%F %d", "%d appears twice"), ("%Y %j %m", "%j is a day of the year and excludes a month"),
      ("%s %z", "%s and %Q"),
      ("%F %T%f%f", "%f appears twice"), ("%F %", "it ends with %"), ("%F %q", "%q is not a directive"),
      ("", "it names no year"),
    ])
  func badDateFormat(_ format: String, _ reason: String) {
    let error = #expect(throws: (any Error).self) {
      try ImportCommand.parse(["a.csv", "--entity", "Item", "--date-format", format])
    }
    #expect(
      error.map { ImportCommand.message(for: $0).contains(reason) } == true,
      "\(error.map { ImportCommand.message(for: $0) } ?? "")")
  }
}

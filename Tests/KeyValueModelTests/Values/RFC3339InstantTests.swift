import KeyValueModel
import Support
import Testing

@Suite struct RFC3339InstantTests {
  @Test(
    "a date is the moment it names",
    arguments: [
      ("1970-01-01", 0, 0),
      ("1970-01-01T00:00:00Z", 0, 0),
      ("1970-01-01T00:00:01z", 1, 0),
      ("1969-12-31T23:59:59Z", -1, 0),
      ("1969-12-31T23:59:59.25Z", -1, 250_000_000),
      ("1970-01-01T01:00:00+01:00", 0, 0),
      ("1969-12-31T18:30:00-05:30", 0, 0),
      ("2000-02-29", 951_782_400, 0),
      ("2000-03-01", 951_868_800, 0),
      ("1900-03-01", -2_203_891_200, 0),
      ("2038-01-19T03:14:08Z", 2_147_483_648, 0),
      ("2010-03-01t09:30:00.123456789+02:00", 1_267_428_600, 123_456_789),
      ("2010-03-01T09:30:00.1234567899Z", 1_267_435_800, 123_456_789),
      ("2010-03-01T09:30:00.5Z", 1_267_435_800, 500_000_000),
      ("1990-12-31T23:59:60Z", 662_688_000, 0),
      ("1990-12-31T15:59:60-08:00", 662_688_000, 0),
      ("1991-01-01T00:59:60.5+01:00", 662_688_000, 500_000_000),
      ("2012-06-30T23:59:60Z", 1_341_100_800, 0),
      ("1937-01-01T12:00:27.87+00:20", -1_041_337_173, 870_000_000),
      ("9999-12-31T23:59:59Z", 253_402_300_799, 0),
      ("0001-01-01", -62_135_596_800, 0),
      ("0000-01-01", -62_167_219_200, 0),
      ("0000-03-01", -62_162_035_200, 0),
    ])
  func moments(text: String, seconds: Int64, nanoseconds: Int32) throws {
    let instant = try #require(RFC3339Instant(text))
    #expect(instant.seconds == seconds)
    #expect(instant.nanoseconds == nanoseconds)
  }

  @Test(
    "what is no date names no moment",
    arguments: [
      "", "2010", "2010-13-01", "2010-02-29", "2010-03-01T", "2010-03-01T09:30:00", "2010-03-01T24:00:00Z",
      "2010-03-01T09:30:61Z", "1998-12-31T23:58:60Z", "1998-12-31T22:59:60Z", "1998-12-31T23:59:60+01:00",
      "1998-12-30T23:59:60Z", "2010-03-01T09:30:00.Z", "2010-03-01T09:30:00+2:00", "2010-03-01 09:30:00Z", "tomorrow",
    ])
  func others(text: String) {
    #expect(RFC3339Instant(text) == nil)
  }

  @Test("each day is one day after the one before, over 800 years")
  func days() throws {
    var expected: Int64 = 0
    func twoDigits(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    for year in 1582..<2400 {
      for month in 1...12 {
        for day in 1...31 {
          guard let instant = RFC3339Instant("\(year)-\(twoDigits(month))-\(twoDigits(day))") else { continue }
          if year == 1582, month == 1, day == 1 { expected = instant.seconds }
          #expect(instant.seconds == expected)
          expected += 86_400
        }
      }
    }
    #expect(RFC3339Instant("1582-10-15")?.seconds == -12_219_292_800)
    #expect(expected == RFC3339Instant("2400-01-01")?.seconds)
  }

  @Test("moments are ordered by time, to the nanosecond")
  func order() throws {
    let earlier = try #require(RFC3339Instant("2010-03-01T00:00:00.999999999Z"))
    let later = try #require(RFC3339Instant("2010-03-01T00:00:01Z"))
    #expect(earlier < later)
    #expect(!(later < earlier))
    #expect(try later == #require(RFC3339Instant("2010-03-01T01:00:01+01:00")))
  }
}

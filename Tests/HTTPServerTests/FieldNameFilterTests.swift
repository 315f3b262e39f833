import Testing

@testable import HTTPServer

@Suite("Filtering fields of a request") struct FieldNameFilterTests {
  private static let names = [
    "Host", "Accept", "Accept-Encoding", "Content-Type", "If-None-Match", "Keyway-Cursor", "Last-Event-ID", "X", "_a-1",
  ]

  private static func filter(of names: [String]) -> FieldNameFilter {
    var filter = FieldNameFilter()
    for name in names { Array(name.utf8).withUnsafeBytes { filter.insert($0) } }
    return filter
  }

  @Test("A field that was sent may be there, in whichever case its name is written", arguments: names)
  func sent(_ name: String) {
    let filter = Self.filter(of: [name])
    for spelling in [name, name.lowercased(), name.uppercased()] { #expect(filter.mayContain(spelling), "\(spelling)") }
    for other in Self.names where Self.filter(of: [name, other]) != filter { #expect(!filter.mayContain(other)) }
  }

  @Test("Of the fields that handlers ask for, a browser's request excludes most")
  func excluded() {
    let filter = Self.filter(of: [
      "Host", "Connection", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language", "Cache-Control", "sec-ch-ua",
      "sec-ch-ua-mobile", "sec-ch-ua-platform", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest", "Referer",
    ])
    let asked = [
      "keyway-request", "keyway-cursor", "keyway-forwarded", "keyway-writer", "if-match", "if-none-match", "origin",
      "authorization", "cookie", "last-event-id", "idempotency-key",
    ]
    #expect(asked.count { filter.mayContain($0) } <= 2)
  }

  @Test("Without a field there is none, and a name without letters is never there")
  func empty() {
    for name in Self.names + [""] { #expect(!FieldNameFilter().mayContain(name)) }
    #expect(!Self.filter(of: Self.names).mayContain(""))
    #expect(Self.filter(of: [""]) == FieldNameFilter())
  }
}

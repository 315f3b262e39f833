import Testing

@testable import Cluster

/// The times at which a node queries the database after notifications from other nodes.
@Suite("News of other nodes")
struct HeardNewsTests {
  private let start = ContinuousClock.now

  private func time(_ milliseconds: Int) -> HeardNews.Time { start + .milliseconds(milliseconds) }

  /// Returns `isDue` at each of these times, with the revision known then.
  private func asked(_ news: inout HeardNews, _ looks: [(HeardNews.Time, known: UInt64)]) -> [Bool] {
    looks.map { news.isDue(at: $0.0, known: $0.known) }
  }

  @Test("A new revision is queried at once, and once; a known one is not, and an unnamed one always is")
  func asking() {
    var news = HeardNews()
    #expect(asked(&news, [(time(0), 0)]) == [false])
    news.hear(5, at: time(0), known: 5, isHanded: false)
    #expect(news.due == nil)
    news.hear(6, at: time(1), known: 5, isHanded: false)
    #expect(asked(&news, [(time(1), 5), (time(1), 5)]) == [true, false])
    news.hear(nil, at: time(2), known: 99, isHanded: true)
    #expect(asked(&news, [(time(2), 99)]) == [true])
    #expect(news.due == nil)
  }

  @Test("If records are handed over, those that come in time are not queried, and the others are")
  func waiting() {
    var news = HeardNews()
    let patience = HeardNews.patience
    news.hear(6, at: time(0), known: 5, isHanded: true)
    news.hear(7, at: time(1), known: 5, isHanded: true)
    #expect(news.due == time(0) + patience)
    // The first record has arrived at the second check, and the second gets as much time as the first.
    #expect(asked(&news, [(time(1), 5), (time(2), 6)]) == [false, false])
    #expect(news.due == time(2) + patience)
    #expect(asked(&news, [(time(3), 7)]) == [false])
    #expect(news.due == nil)
    news.hear(9, at: time(4), known: 7, isHanded: true)
    #expect(asked(&news, [(time(4) + patience, 8)]) == [true])
    #expect(news.due == nil)
    // A notification without a record does not wait with them.
    news.hear(10, at: time(50), known: 8, isHanded: true)
    news.hear(nil, at: time(51), known: 8, isHanded: true)
    #expect(asked(&news, [(time(51), 10)]) == [true])
  }
}

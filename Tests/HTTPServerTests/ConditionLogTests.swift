import Logging
import Support
import Testing

@testable import HTTPServer

@Suite struct ConditionLogTests {
  /// Collects the log lines as text.
  private final class Lines: Sendable {
    let all = Locked([String]())
    let second = Locked<Int64>(1_000)

    var log: ConditionLog {
      ConditionLog(
        logger: Logger(label: "test") { _ in Handler(lines: self) }, quietSeconds: 60,
        now: { self.second.withLock { $0 } })
    }

    func pass(_ seconds: Int64) { second.withLock { $0 += seconds } }

    func take() -> [String] {
      all.withLock { all in
        defer { all = [] }
        return all
      }
    }
  }

  private struct Handler: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: Lines) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
      let fields = (event.metadata ?? [:]).sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      lines.all.withLock { $0.append("\(event.level) \(event.message) \(fields.joined(separator: " "))") }
    }
  }

  private static let full = Condition("full", "it is full")

  @Test func aConditionIsLoggedOnceWhenItBeginsAndOnceWhenItHasEnded() {
    let lines = Lines()
    let log = lines.log
    for _ in 0..<10_000 {
      log.note(Self.full, client: .unknown, detail: "no room")
      log.sweep()
    }
    #expect(lines.take() == ["warning it is full client=unix condition=full detail=no room"])
    lines.pass(59)
    log.sweep()
    #expect(lines.take() == [])
    lines.pass(1)
    log.sweep()
    log.sweep()
    #expect(lines.take() == ["notice ended: it is full condition=full count=10000 seconds=60"])
    #expect(log.counts.map(\.count.total) == [10_000] && !log.counts[0].count.isActive)
  }

  @Test func aConditionThatComesAgainIsLoggedAgainAndCountedOn() {
    let lines = Lines()
    let log = lines.log
    log.note(Self.full)
    lines.pass(60)
    log.sweep()
    lines.pass(5)
    log.note(Self.full, count: 2)
    lines.pass(60)
    log.sweep()
    #expect(
      lines.take() == [
        "warning it is full condition=full", "notice ended: it is full condition=full count=1 seconds=60",
        "warning it is full condition=full", "notice ended: it is full condition=full count=2 seconds=60",
      ])
    #expect(log.counts.map(\.count.total) == [3])
  }

  @Test func aConditionThatLastsIsLoggedNowAndThen() {
    let lines = Lines()
    let log = lines.log
    for _ in 0..<1_800 {
      log.note(Self.full)
      log.sweep()
      lines.pass(1)
    }
    #expect(
      lines.take() == [
        "warning it is full condition=full", "warning still: it is full condition=full count=601 seconds=600",
        "warning still: it is full condition=full count=1201 seconds=1200",
      ])
  }

  @Test func aConditionWithAKnownEndEndsThen() {
    let lines = Lines()
    let log = lines.log
    log.set(Self.full, isActive: true, detail: "why")
    lines.pass(100)
    log.set(Self.full, isActive: true, detail: "why")
    log.sweep()
    #expect(lines.take() == ["warning it is full condition=full detail=why"])
    #expect(log.counts[0].count.isActive)
    for _ in 0..<2 { log.set(Self.full, isActive: false) }
    #expect(lines.take() == ["notice ended: it is full condition=full count=1 seconds=100"])
  }

  @Test func conditionsAreApart() {
    let lines = Lines()
    let log = lines.log
    log.note(.streams)
    log.note(.connections)
    #expect(lines.take().count == 2)
    #expect(Set(log.counts.map(\.condition)) == [.streams, .connections])
  }
}

import Testing

@testable import HTTPServer

@Suite struct HubInboxTests {
  private let event = EventBytes([UInt8](repeating: 97, count: 100))

  private func taken(_ inbox: inout HubInbox) -> [HubCommand] {
    var commands: [HubCommand] = []
    inbox.take(into: &commands)
    return commands
  }

  @Test func aThreadIsWokenOnceForManyCommands() {
    var inbox = HubInbox(byteLimit: 1_000)
    #expect(inbox.append(.drain) == .unneeded)
    _ = taken(&inbox)
    #expect(taken(&inbox).isEmpty)
    #expect(inbox.append(.drain) == .needed)
    #expect(inbox.append(.drain) == .unneeded)
  }

  @Test func onlyTheLastOfSeveralPositionsIsKept() {
    var inbox = HubInbox(byteLimit: 1_000)
    inbox.append(position: 1)
    inbox.append(position: 2)
    #expect(taken(&inbox).count == 1)
  }

  @Test func aFullInboxLosesEventsAndSaysSoOnceForEachTarget() {
    var inbox = HubInbox(byteLimit: 50)
    for _ in 0..<5 { inbox.append(.channel(ChannelID(1), event)) }
    inbox.append(.stream(StreamID(1), event))
    let commands = taken(&inbox)
    #expect(commands.count == 3)
    guard case .deliver = commands[0], case .overflow(.channel) = commands[1], case .overflow(.stream) = commands[2]
    else {
      Issue.record("unexpected commands: \(commands)")
      return
    }
  }

  @Test func aStreamOpenedAfterALossLosesNothingUnnoticed() {
    var inbox = HubInbox(byteLimit: 50)
    for _ in 0..<3 { inbox.append(.channel(ChannelID(1), event)) }
    _ = inbox.append(.open(StreamID(1), prelude: event, channel: ChannelID(1)))
    inbox.append(.channel(ChannelID(1), event))
    let commands = taken(&inbox)
    #expect(commands.count == 4)
    guard case .overflow = commands[1], case .open = commands[2], case .overflow = commands[3] else {
      Issue.record("unexpected commands: \(commands)")
      return
    }
  }

  @Test func aClosedInboxRefuses() {
    var inbox = HubInbox(byteLimit: 50)
    _ = inbox.append(.drain)
    #expect(inbox.close().count == 1)
    #expect(inbox.append(.drain) == nil)
  }

  @Test func memoryIsGivenBackTwoSweepsAfterAMassDeparture() {
    var trim = MemoryTrim()
    let isDue = [2_000, 100, 100, 100, 100].map { trim.isDue(streams: $0) }
    #expect(isDue == [false, false, false, true, false])
  }
}

import Testing

@testable import HTTPServer

@Suite struct HubInboxTests {
  private let event = EventBytes([UInt8](repeating: 97, count: 100))

  private func event(at position: UInt64) -> EventBytes {
    EventBytes([UInt8](repeating: 97, count: 100), position: position)
  }

  /// Returns the reported losses: target and first lost position of each.
  private func losses(_ commands: [HubCommand]) -> [String] {
    commands.compactMap { command in
      guard case .overflow(let target, let position) = command else { return nil }
      return switch target {
      case .channel(let id): "channel \(id.number) \(position)"
      case .stream(let id): "stream \(id.number) \(position)"
      }
    }
  }

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
    guard case .deliver = commands[0], case .overflow(.channel, _) = commands[1],
      case .overflow(.stream, _) = commands[2]
    else {
      Issue.record("unexpected commands: \(commands)")
      return
    }
  }

  @Test func aStreamOpenedAfterALossLosesNothingUnnoticed() {
    var inbox = HubInbox(byteLimit: 50)
    for _ in 0..<3 { inbox.append(.channel(ChannelID(1), event)) }
    _ = inbox.append(
      .open(
        HubOpening(id: StreamID(1), client: .unknown, prelude: event, channel: ChannelID(1), overflow: .coalesce)))
    inbox.append(.channel(ChannelID(1), event))
    let commands = taken(&inbox)
    #expect(commands.count == 4)
    guard case .overflow = commands[1], case .open = commands[2], case .overflow = commands[3] else {
      Issue.record("unexpected commands: \(commands)")
      return
    }
  }

  @Test func aLossNamesThePositionOfTheFirstEventThatIsLost() {
    var inbox = HubInbox(byteLimit: 150)
    for position in 1...5 as ClosedRange<UInt64> { inbox.append(.channel(ChannelID(1), event(at: position))) }
    inbox.append(.stream(StreamID(1), event(at: 6)))
    inbox.append(.channel(ChannelID(2), event(at: 7)))
    inbox.append(.stream(StreamID(1), event(at: 8)))
    #expect(losses(taken(&inbox)) == ["channel 1 3", "stream 1 6", "channel 2 7"])
    inbox.append(.channel(ChannelID(1), event(at: 9)))
    #expect(losses(taken(&inbox)).isEmpty)
    for position in 10...12 as ClosedRange<UInt64> { inbox.append(.channel(ChannelID(1), event(at: position))) }
    #expect(losses(taken(&inbox)) == ["channel 1 12"])
  }

  @Test func aFullInboxKeepsEndsAndCatchUps() {
    var inbox = HubInbox(byteLimit: 50)
    for position in 1...3 as ClosedRange<UInt64> { inbox.append(.channel(ChannelID(1), event(at: position))) }
    inbox.append(.catchUp(StreamID(1), event, isLast: false))
    inbox.append(.endStream(StreamID(2), event))
    inbox.append(.endChannel(ChannelID(1), event))
    let commands = taken(&inbox)
    #expect(commands.count == 5)
    guard case .deliver(.catchUp) = commands[2], case .deliver(.endStream) = commands[3],
      case .deliver(.endChannel) = commands[4]
    else {
      Issue.record("unexpected commands: \(commands)")
      return
    }
  }

  @Test func aStreamThatIsCaughtUpAfterALossHearsOfTheNext() {
    var inbox = HubInbox(byteLimit: 50)
    for position in 1...3 as ClosedRange<UInt64> { inbox.append(.channel(ChannelID(1), event(at: position))) }
    inbox.append(.catchUp(StreamID(1), event, isLast: false))
    inbox.append(.channel(ChannelID(1), event(at: 4)))
    inbox.append(.catchUp(StreamID(1), event, isLast: true))
    inbox.append(.channel(ChannelID(1), event(at: 5)))
    #expect(losses(taken(&inbox)) == ["channel 1 2", "channel 1 5"])
  }

  @Test func aClosedInboxRefuses() {
    var inbox = HubInbox(byteLimit: 50)
    _ = inbox.append(.drain)
    #expect(inbox.close().count == 1)
    #expect(inbox.append(.drain) == nil)
  }

  @Test func memoryIsGivenBackTwoSweepsAfterAMassDeparture() {
    var trim = MemoryTrim(leastChange: 500)
    let isDue = [2_000, 2_000, 2_000, 100, 100, 100, 100].map { trim.isDue($0) }
    #expect(isDue == [false, false, false, false, false, true, false])
  }

  @Test func memoryIsGivenBackTwoSweepsAfterAMassArrival() {
    var trim = MemoryTrim(leastChange: 500, countsRises: true)
    let isDue = [400, 900, 2_000, 3_000, 3_100, 3_200, 100, 100, 100].map { trim.isDue($0) }
    #expect(isDue == [false, false, false, false, true, false, false, false, true])
  }
}

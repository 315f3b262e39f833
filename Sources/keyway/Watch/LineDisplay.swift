import Foundation
import KeywayClient

/// Events as lines on standard output, remarks about the connection on standard error.
struct LineDisplay: WatchDisplay {
  var isJSON: Bool
  var showsHeartbeats: Bool

  func show(_ event: ServerSentEvent) {
    guard showsHeartbeats || event.event != "heartbeat" else { return }
    if isJSON { return StandardOutput.line(EventLine.json(event)) }
    let time = EventLine.time(Date())
    let isTerminal = StandardOutput.isTerminal
    for line in EventLine.lines(event) {
      StandardOutput.line("\(time) \(isTerminal ? TerminalText.clean(line, maximumScalars: .max) : line)")
    }
  }

  func note(_ notice: EventStreamNotice) {
    guard case .reconnecting(let reason, let delay) = notice else { return }
    StandardError.line("keyway: \(reason); coming back in \(Double(delay) / 1000) s")
  }
}

import Glibc
import TestKit

/// Binds many cells to one long text, and writes it.
struct CellAttack: Attack {
  let name = "cells"
  let summary = "binds 100 cells, 64 times each, to one text of 1 MB, and writes that text"

  private static let cells: String = {
    let paths = Array(repeating: #""text""#, count: 64).joined(separator: ",")
    let cells = (0..<100).map { #""c\#($0)":{"object":"Big/1","keyPaths":[\#(paths)]}"# }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }()
  private static let text = "\"" + String(repeating: "y", count: NeighbourWorld.longText) + "\""

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if random.chance(50) {
      neighbour.send(.setting("/v1/objects/Big/1/text", Self.text))
    } else {
      let request = WireRequest("POST", "/v1/streams", ["Accept": "text/event-stream"], body: Self.cells)
      neighbour.hold(Array(request.text(to: neighbour.address).utf8), answers: true)
    }
  }
}

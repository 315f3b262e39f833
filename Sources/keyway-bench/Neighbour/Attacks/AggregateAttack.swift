import TestKit

/// Streams with 1,000 cells on aggregates of the large department's employees: distinct names, which are worked out
/// anew from all of them, and the least and the greatest.
struct AggregateAttack: Attack {
  let name: String
  let summary: String
  /// In how many of 100 steps an employee is renamed, and not a stream opened.
  let writePercent: Int
  /// The options of the cells.
  let options: String

  /// Keeps streams with such cells, and renames employees: each commit concerns all cells.
  static let observing = AggregateAttack(
    name: "aggregates", summary: "binds 1,000 cells to aggregates of a large collection, and renames its members",
    writePercent: 90, options: #"["old","new"]"#)

  /// Opens one such stream after the other: each begins with all values.
  static let opening = AggregateAttack(
    name: "opening", summary: "opens streams of 1,000 cells that begin with aggregates of a large collection",
    writePercent: 0, options: #"["initial","old","new"]"#)

  private func cells() -> String {
    let paths = ["@distinctUnionOfObjects.lastName", "@max.salary", "@min.salary", "@max.lastName"]
    let cells = (0..<1_000).map { number in
      #""c\#(number)":{"object":"Department/1","keyPaths":["employees.\#(paths[number % paths.count])"],"#
        + #""options":\#(options)}"#
    }
    return #"{"cells":{\#(cells.joined(separator: ","))}}"#
  }

  func step(_ neighbour: Neighbour, _ random: inout SplitMix64) {
    if random.chance(writePercent), neighbour.heldCount > 0 {
      let employee = Int.random(in: 0..<1_000, using: &random)
      neighbour.send(
        .setting("/v1/objects/Employee/\(employee)/lastName", "\"R\(Int.random(in: 0..<100, using: &random))\""))
    } else {
      let request = WireRequest("POST", "/v1/streams", ["Accept": "text/event-stream"], body: cells())
      neighbour.hold(Array(request.text(to: neighbour.address).utf8), answers: true)
    }
  }
}

/// What the report says, in order; the same as text and as JSON.
extension DurableReport {
  /// One thing that was measured once in each round.
  struct Series: Hashable, Sendable {
    /// What a person reads.
    var title: String
    /// Its name in the JSON object.
    var name: String
    var loads: [Load]

    func median<Number: Comparable>(_ figure: (Load) -> Number) -> Number? { loads.map(figure).median }
  }

  /// One ratio in each round.
  struct Ratios: Hashable, Sendable {
    var title: String
    var name: String
    var values: [Double]
  }

  /// The measurements, those that were not made left out.
  var series: [Series] {
    var result: [Series] = []
    for count in connectionCounts {
      for peer in WritePeer.Kind.allCases {
        let loads = rounds.compactMap { $0.writes[Subject(peer: peer, connections: count)] }
        result.append(Series(title: "\(peer), \(Self.words(count))", name: "\(peer)Writes\(count)", loads: loads))
      }
    }
    result.append(
      Series(title: "GET, \(Self.words(readers))", name: "reads", loads: rounds.compactMap(\.readsAlone)))
    result.append(
      Series(
        title: "GET, \(Self.words(readers)), while \(writers) write", name: "readsWhileWriting",
        loads: rounds.compactMap(\.readsWhileWriting)))
    result.append(
      Series(
        title: "those writes", name: "writesWhileReading", loads: rounds.compactMap(\.writesWhileReading)))
    return result.filter { !$0.loads.isEmpty }
  }

  /// The ratios, those that are not known left out.
  var ratios: [Ratios] {
    var result: [Ratios] = []
    for count in connectionCounts {
      for peer in WritePeer.Kind.allCases where peer != .keyway {
        result.append(
          Ratios(
            title: "keyway / \(peer), \(Self.words(count))", name: "\(peer)Ratio\(count)",
            values: rounds.compactMap { $0.ratio(to: peer, connections: count) }))
      }
    }
    result.append(
      Ratios(title: "GET while writing / GET", name: "readRatio", values: rounds.compactMap(\.readRatio)))
    return result.filter { !$0.values.isEmpty }
  }

  private var connectionCounts: [Int] { Set([connections, 1]).sorted(by: >) }

  private static func words(_ connections: Int) -> String {
    connections == 1 ? "1 connection" : "\(connections) connections"
  }
}

import KeyValueModel
import TestKit
import Testing

@Suite("The benchmark of a hostile neighbour", .timeLimit(.minutes(60)))
struct NeighbourBenchTests {
  @Test("It reports of each attack what the others noticed, and that they were served and told everything")
  func report() throws {
    let bench = try ChildProcess.keywayBench(
      "neighbour", "--attack", "pages", "--attack", "noise", "--seconds", "1", "--calm", "1", "--listeners",
      "20", "--readers", "4", "--writers", "4", "--rate", "20", "--notes", "4", "--objects", "50", "--neighbours", "2",
      "--held", "50", "--seed", "7", "--json")
    let report = try Value(json: bench.output)
    #expect(report["seed"].text == "7")
    let attacks = report["attacks"].elements ?? []
    #expect(attacks.map { $0["attack"].text } == ["pages", "noise"], "\(bench.output) \(bench.errors)")
    for attack in attacks {
      #expect(attack["isFaultless"] == .bool(true), "\(attack.json)")
      #expect(attack["listeners"].whole == 20 && attack["failure"] == .null)
      #expect((attack["attacked"]["reads"]["tally"]["answered"].whole ?? 0) > 0)
      #expect((attack["attacked"]["writes"]["tally"]["answered"].whole ?? 0) > 0)
      #expect((attack["largestResidentBytes"].whole ?? 0) > 0)
    }
    #expect((attacks.first?["neighbour"]["answered"].whole ?? 0) > 0)
    #expect(bench.status == 0)
  }

  @Test("It lists what the neighbour can do, and refuses what is no attack")
  func list() throws {
    let list = try ChildProcess.keywayBench("neighbour", "--list")
    let names = list.output.split(separator: "\n").compactMap { $0.split(separator: ":").first.map(String.init) }
    #expect(names.count > 15 && Set(names).count == names.count && names.last == "mixture")
    let unknown = try ChildProcess.keywayBench("neighbour", "--attack", "kindness")
    #expect(unknown.status != 0 && unknown.errors.contains("mixture"))
  }
}

import ArgumentParser
import Foundation
import HTTPServer
import KeyValueModel
import Support
import TestKit

/// `keyway-bench attack`: the process of the neighbour that `keyway-bench neighbour` measures, so not displayed. It
/// attacks a server for some seconds, and prints what came of that.
///
/// A process of its own: threads that run only while nothing else wants a processor would otherwise keep locks of the
/// allocator and of the address space from those who measure.
struct BenchAttackCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attack", abstract: "Attacks a server for keyway-bench neighbour.", shouldDisplay: false)

  @Option(help: "The port of the server.")
  var port: UInt16

  @Option(help: "The epoch of its store.")
  var epoch: String

  @Option(help: "The attack, by its name.")
  var attack: String

  @Option(help: "How long it lasts.")
  var seconds: Int

  @Option(help: "Where its randomness begins.")
  var seed: UInt64

  @Option(help: "How many threads it has.")
  var threads: Int

  @Option(help: "Their nice value; without it they run while nothing else wants a processor.")
  var nice: Int?

  @Option(help: "How many connections it keeps open at most.")
  var held: Int

  func run() throws {
    guard let attack = AttackTable.named([attack])?.first else { throw ValidationError("no attack \(attack)") }
    let neighbour = Neighbour(port: port, epoch: epoch, maximumHeld: held)
    for number in 0..<threads {
      Thread.detachNewThread { [nice, seed] in
        if let nice { SystemThread.setNice(nice) } else { SystemThread.runWhenIdle() }
        var random = SplitMix64(seed: seed, part: UInt64(number))
        while !neighbour.isOver { attack.step(neighbour, &random) }
      }
    }
    sleep(UInt32(seconds))
    neighbour.end()
    print(neighbour.tally.json.json)
  }
}

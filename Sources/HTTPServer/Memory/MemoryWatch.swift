/// Keeps the limits of a ledger at what is left for clients: the process aims to stay below a number of bytes, and the
/// model, which no client holds, takes its part of them first.
package struct MemoryWatch: Sendable {
  /// The process's own part is believed to shrink by this part of it from one look to the next at most: memory that is
  /// reserved but not filled yet (a body that was announced) hides some of it for a while.
  private static let decayPart = 64
  /// From how many bytes on memory that clients let go is given back to the system.
  private static let trimmedBytes = 32 << 20

  private let ledger: MemoryLedger
  private let shares: MemoryShares
  private let clientBytes: Int
  private let addressSpaceBytes: Int?
  private var ownBytes = 0
  private var ownAddressSpaceBytes = 0
  private var trim = MemoryTrim(leastFall: trimmedBytes)

  /// A watch of a ledger, which has its first limits at once, by what the machine gives and the process takes now.
  package init(_ ledger: MemoryLedger, limits: MemoryLimits) {
    self.init(ledger, limits: limits, machine: .current, now: .current)
  }

  /// The same with a given machine, and with what the process takes now if that is known.
  init(_ ledger: MemoryLedger, limits: MemoryLimits, machine: MachineMemory, now: ProcessMemory?) {
    self.ledger = ledger
    shares = MemoryShares(limits, machine: machine)
    clientBytes = limits.clientBytes
    // A sixteenth of the address space stays free: a mapping that the system refuses ends the process.
    addressSpaceBytes = machine.addressSpaceBytes.map { $0 - $0 / 16 }
    look(now)
  }

  /// Call at each sweep, with what the process takes.
  mutating func look(_ now: ProcessMemory?) {
    let held = ledger.total
    if let now {
      ownBytes = max(now.residentBytes - held, ownBytes - ownBytes / Self.decayPart)
      ownAddressSpaceBytes = now.addressSpaceBytes - held
    }
    var left = shares.bytes - max(0, ownBytes)
    if let addressSpaceBytes { left = min(left, addressSpaceBytes - max(0, ownAddressSpaceBytes)) }
    let limit = max(shares.leastClientBytes, left)
    ledger.setLimits(limit, client: clientBytes > 0 ? clientBytes : limit / 2)
  }

  /// Gives memory back to the system some sweeps after clients let go of much. Call at each sweep, behind `look`.
  mutating func giveBack() {
    if trim.isDue(ledger.total) { SystemAllocator.giveBack() }
  }
}

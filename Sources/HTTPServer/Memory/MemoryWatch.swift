import CLinux
import Support

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

/// How much memory the process aims to stay below, and how much of what is left for clients one of them may have.
package struct MemoryLimits: Sendable {
  /// What the process aims to stay below, in bytes; 0 takes three quarters of what the machine gives it.
  /// `memory.bytes`.
  package var bytes = 0
  /// What one client may make the server hold, in bytes; 0 is half of what all of them may. `memory.clientBytes`.
  package var clientBytes = 0
  /// The most bytes of memory that all objects may take when a write adds to them; 0 is the part of `bytes` that
  /// `MemoryShares` gives them. `objects.bytes`.
  package var objectBytes = 0

  /// The defaults.
  package init() {}
}

/// The division of `memory.bytes` between the objects, the commits of the past and the clients.
///
/// Five eighths are for the objects, an eighth for the history, and an eighth at least for what clients make the server
/// hold, which gets all that the others leave. The last eighth is for the program itself: its threads, the journal's
/// pages, a snapshot being written, and the records that a start reads before they are objects.
package struct MemoryShares: Sendable {
  private static let parts = 8
  private static let objectParts = 5

  /// The bytes that the process aims to stay below.
  fileprivate let bytes: Int
  /// The most bytes of memory that the objects may take when a write adds to them.
  package let objectBytes: Int
  /// The most bytes of the commits that are kept for resuming clients.
  package let historyBytes: Int
  /// The bytes that clients may hold however much the others take.
  fileprivate let leastClientBytes: Int

  /// The shares on this machine.
  package init(_ limits: MemoryLimits) { self.init(limits, machine: .current) }

  /// The shares on a given machine. A mapping that the system refuses ends the process, so the objects get their part
  /// of three quarters of the address space where `memory.bytes` is more.
  init(_ limits: MemoryLimits, machine: MachineMemory) {
    bytes = limits.bytes > 0 ? limits.bytes : machine.bytes / 4 * 3
    let possible = min(bytes, (machine.addressSpaceBytes ?? .max) / 4 * 3)
    objectBytes = limits.objectBytes > 0 ? limits.objectBytes : possible / Self.parts * Self.objectParts
    historyBytes = possible / Self.parts
    leastClientBytes = bytes / Self.parts
  }
}

/// Says when to give memory back to the system after a flood: the C library keeps what is freed.
struct MemoryTrim: Sendable {
  private let leastFall: Int
  private var peak = 0
  private var sweepsLeft: Int?

  /// Looks at an amount that has to fall by more than `leastFall`, and by more than a half.
  init(leastFall: Int) {
    self.leastFall = leastFall
  }

  /// Whether now is the time: two sweeps after the fall, when every thread has freed its own. Call at regular times
  /// with the amount.
  mutating func isDue(_ amount: Int) -> Bool {
    peak = max(peak, amount)
    if amount < peak / 2, peak - amount > leastFall {
      peak = amount
      sweepsLeft = 2
      return false
    }
    guard let left = sweepsLeft else { return false }
    sweepsLeft = left > 1 ? left - 1 : nil
    return left == 1
  }
}

/// The C library's memory allocator, which Swift's objects come from.
package enum SystemAllocator {
  /// Blocks of this many bytes and more, such as large bodies, answers and arrays, are mapped one by one, so that the
  /// system has them back as soon as they are freed.
  private static let mappedBytes: Int32 = 512 << 10
  /// How many bytes may be free at the end of a heap before they are given back.
  private static let spareBytes: Int32 = 16 << 20

  /// Makes the allocator give memory back after a flood. Left alone, it raises both numbers with what is freed, up to
  /// where tens of megabytes of each thread stay, and each of eight heaps a core reserves 64 MiB of address space. Call
  /// once, before much is allocated.
  package static func configure() {
    mallopt(M_MMAP_THRESHOLD, mappedBytes)
    mallopt(M_TRIM_THRESHOLD, spareBytes)
    mallopt(M_ARENA_MAX, Int32(clamping: max(4, SystemThread.coreCount)))
  }

  /// Gives all free memory back to the system. Takes as long as looking through it does.
  package static func giveBack() {
    malloc_trim(0)
  }
}

import CLinux
import Support

/// Keeps the limits of a ledger at the memory left for clients: the process aims to stay below a number of bytes, and
/// the model, which no client holds, takes its part of them first.
package struct MemoryWatch: Sendable {
  /// The divisor of the maximum decrease, from one check to the next, of the estimate of the process's own memory:
  /// memory that is reserved but not filled yet (for a body that was announced) hides some of it for a while.
  private static let decayPart = 64
  /// The number of bytes released by clients from which memory is returned to the system.
  private static let trimmedBytes = 32 << 20

  private let ledger: MemoryLedger
  private let shares: MemoryShares
  private let clientBytes: Int
  private let addressSpaceBytes: Int?
  private var ownBytes = 0
  private var ownAddressSpaceBytes = 0
  private var trim = MemoryTrim(leastChange: trimmedBytes)

  /// Creates a watch of a ledger, and sets the ledger's first limits immediately, based on the memory that the machine
  /// gives and the process uses now.
  package init(_ ledger: MemoryLedger, limits: MemoryLimits) {
    self.init(ledger, limits: limits, machine: .current, now: .current)
  }

  /// Creates a watch with a given machine, and with the current memory of the process if it is known.
  init(_ ledger: MemoryLedger, limits: MemoryLimits, machine: MachineMemory, now: ProcessMemory?) {
    self.ledger = ledger
    shares = MemoryShares(limits, machine: machine)
    clientBytes = limits.clientBytes
    // A sixteenth of the address space stays free: the process ends if the system refuses a mapping.
    addressSpaceBytes = machine.addressSpaceBytes.map { $0 - $0 / 16 }
    look(now)
  }

  /// Updates the limits. Call it at each sweep, with the current memory of the process.
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

  /// Returns memory to the system some sweeps after clients released a lot. Call it at each sweep, after `look`.
  mutating func releaseFreeMemory() {
    if trim.isDue(ledger.total) { SystemAllocator.releaseFreeMemory() }
  }
}

/// The limits of the memory that the process aims to stay below, and of the part that one client may have.
package struct MemoryLimits: Sendable {
  /// The memory that the process aims to stay below, in bytes; 0 means three quarters of what the machine gives it.
  /// `memory.bytes`.
  package var bytes = 0
  /// The memory that one client may make the server hold, in bytes; 0 means half of what all clients may.
  /// `memory.clientBytes`.
  package var clientBytes = 0
  /// The maximum memory that all objects may take when a write adds to them, in bytes; 0 means the part of `bytes` that
  /// `MemoryShares` gives them. `objects.bytes`.
  package var objectBytes = 0

  /// Creates the default limits.
  package init() {}
}

/// The division of `memory.bytes` between the objects, the history and the clients.
///
/// Five eighths are for the objects, an eighth for the history, and at least an eighth for the memory that clients make
/// the server hold, which gets everything that the others leave. The last eighth is for the program itself: its
/// threads, the journal's pages, a snapshot being written, and the records that a start reads before they become
/// objects.
package struct MemoryShares: Sendable {
  private static let parts = 8
  private static let objectParts = 5

  /// The number of bytes that the process aims to stay below.
  fileprivate let bytes: Int
  /// The maximum memory that the objects may take when a write adds to them, in bytes.
  package let objectBytes: Int
  /// The maximum size of the commits kept for resuming clients, in bytes.
  package let historyBytes: Int
  /// The number of bytes that clients may hold however much the others take.
  fileprivate let leastClientBytes: Int

  /// Creates the shares for this machine.
  package init(_ limits: MemoryLimits) { self.init(limits, machine: .current) }

  /// Creates the shares for a given machine. Because the process ends if the system refuses a mapping, the objects get
  /// their part of three quarters of the address space if `memory.bytes` is more than that.
  init(_ limits: MemoryLimits, machine: MachineMemory) {
    bytes = limits.bytes > 0 ? limits.bytes : machine.bytes / 4 * 3
    let possible = min(bytes, (machine.addressSpaceBytes ?? .max) / 4 * 3)
    objectBytes = limits.objectBytes > 0 ? limits.objectBytes : possible / Self.parts * Self.objectParts
    historyBytes = possible / Self.parts
    leastClientBytes = bytes / Self.parts
  }
}

/// Decides when to return memory to the system, since the C library keeps what is freed: some time after an amount has
/// fallen by more than half or, if rises count, has more than doubled.
struct MemoryTrim: Sendable {
  private let leastChange: Int
  private let countsRises: Bool
  /// The range of the amounts since the last large change.
  private var range = 0...0
  private var sweepsLeft: Int?

  /// Creates a trim for an amount that has to change by more than `leastChange`. A rise counts if it frees memory too:
  /// a stream that opens frees the buffers of its request.
  init(leastChange: Int, countsRises: Bool = false) {
    (self.leastChange, self.countsRises) = (leastChange, countsRises)
  }

  /// Returns true if memory should be returned now: two sweeps after the change, when every thread has freed its own.
  /// Call it at regular intervals with the amount.
  mutating func isDue(_ amount: Int) -> Bool {
    range = min(range.lowerBound, amount)...max(range.upperBound, amount)
    let hasFallen = amount < range.upperBound / 2 && range.upperBound - amount > leastChange
    let hasRisen = countsRises && amount / 2 > range.lowerBound && amount - range.lowerBound > leastChange
    if hasFallen || hasRisen {
      range = amount...amount
      sweepsLeft = 2
      return false
    }
    guard let left = sweepsLeft else { return false }
    sweepsLeft = left > 1 ? left - 1 : nil
    return left == 1
  }
}

/// The C library's memory allocator, from which Swift's objects are allocated.
package enum SystemAllocator {
  /// The size in bytes from which blocks, such as large bodies, responses and arrays, are mapped individually, so that
  /// the system gets them back as soon as they are freed.
  private static let mappedBytes: Int32 = 512 << 10
  /// The number of bytes that may be free at the end of a heap before they are returned.
  private static let spareBytes: Int32 = 16 << 20

  /// Makes the allocator return memory after a peak. By default it raises both numbers with the sizes that are freed,
  /// until tens of megabytes of each thread are retained, and each of eight heaps a core reserves 64 MiB of address
  /// space. Call once, before much is allocated.
  package static func configure() {
    mallopt(M_MMAP_THRESHOLD, mappedBytes)
    mallopt(M_TRIM_THRESHOLD, spareBytes)
    mallopt(M_ARENA_MAX, Int32(clamping: max(4, SystemThread.coreCount)))
  }

  /// Returns all free memory to the system. The duration depends on the size of the heaps.
  package static func releaseFreeMemory() {
    malloc_trim(0)
  }
}

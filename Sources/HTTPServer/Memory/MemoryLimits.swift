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
  let bytes: Int
  /// The most bytes of memory that the objects may take when a write adds to them.
  package let objectBytes: Int
  /// The most bytes of the commits that are kept for resuming clients.
  package let historyBytes: Int
  /// The bytes that clients may hold however much the others take.
  let leastClientBytes: Int

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

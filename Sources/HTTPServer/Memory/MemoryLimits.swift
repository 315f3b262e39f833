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

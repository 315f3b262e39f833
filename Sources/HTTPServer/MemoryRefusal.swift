/// Why a client is given no more memory.
package enum MemoryRefusal: Error, Hashable, Sendable {
  /// It holds its share: `memory.clientBytes`.
  case clientShare
  /// All clients together hold what there is: `memory.bytes`.
  case total
}

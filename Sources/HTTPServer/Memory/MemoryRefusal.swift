/// Why a client is given no more memory.
package enum MemoryRefusal: String, Error, CaseIterable, Sendable {
  /// It holds its share: `memory.clientBytes`.
  case clientShare = "client"
  /// All clients together hold what there is: `memory.bytes`.
  case total
}

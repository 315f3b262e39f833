#if canImport(Glibc)
  import Glibc
#endif

/// Where the randomness of this run begins: `KEYWAY_TEST_SEED`, or a number that differs from run to run. Every random
/// test prints it with its failures.
package let seed: UInt64 = {
  if let text = getenv("KEYWAY_TEST_SEED").map({ String(cString: $0) }), let given = UInt64(text) { return given }
  return UInt64.random(in: 0..<1_000_000_000)
}()

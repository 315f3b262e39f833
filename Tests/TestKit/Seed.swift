#if canImport(Glibc)
  import Glibc
#endif

/// Where the randomness of this run begins: `KEYWAY_TEST_SEED`, or a number that differs from run to run. It is printed
/// when it is first used, and every random test prints it with its failures.
package let seed: UInt64 = {
  let given = getenv("KEYWAY_TEST_SEED").flatMap { UInt64(String(cString: $0)) }
  let seed = given ?? .random(in: 0..<1_000_000_000)
  let line = "KEYWAY_TEST_SEED=\(seed)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  return seed
}()

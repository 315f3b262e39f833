import Glibc
import Synchronization
import Testing

/// The number of tests that run side by side.
///
/// Swift Testing starts all tests of a run at once. Those that wait then stay open, with their servers, for as long as
/// it takes until every other one has had a turn. So a run has a width: twice as many as there are cores, at least 4.
/// `SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH` in the environment of `swift test` sets another.
enum TestWidth {
  /// The variable that Swift Testing reads before the first test.
  static let variable = "SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH"

  /// The width of this run.
  static var value: Int? { getenv(variable).flatMap { Int(String(cString: $0)) } }
}

/// Sets the width where the environment has none. The loader calls it before `main`; a test, or a trait of one, would
/// come too late, after Swift Testing has read the variable.
@used @section(".init_array")
private let setTestWidth: @convention(c) () -> Void = {
  setenv(TestWidth.variable, String(max(4, 2 * sysconf(Int32(_SC_NPROCESSORS_ONLN)))), 0)
}

@Suite("The width of a run of tests") struct TestWidthTests {
  private static let running = Atomic(0)

  @Test("No more tests run side by side, however many wait", arguments: 0..<64)
  func width(number: Int) async throws {
    let width = try #require(TestWidth.value)
    let count = Self.running.add(1, ordering: .relaxed).newValue
    defer { Self.running.subtract(1, ordering: .relaxed) }
    #expect(count <= width)
    // Each lets the others have a turn.
    for _ in 0..<64 { await Task.yield() }
  }
}

import HTTPTypes
import Support
import Synchronization

/// Counts the requests of one route by method and class of status, and how long they took, in tables of fixed size:
/// what a client sends never becomes a label, and counting takes no lock.
final class RequestCounts: Sendable {
  private final class Count: Sendable {
    let value = Atomic<UInt64>(0)
  }

  private static let methods: [HTTPRequest.Method] = [.get, .put, .patch, .post, .delete, .head, .options]
  private static let statusClasses = 6

  private let route: String
  private let counts: [Count]
  /// By class of status.
  private let durations: [DurationHistogram]

  /// Counts of the requests that metrics say are of `route`.
  init(route: String) {
    self.route = route
    counts = (0..<(Self.methods.count + 1) * Self.statusClasses).map { _ in Count() }
    durations = (0..<Self.statusClasses).map { _ in DurationHistogram() }
  }

  /// Counts a response, and what it took to make it.
  func count(_ method: HTTPRequest.Method, status: HTTPResponse.Status, after watch: Stopwatch) {
    let row = Self.methods.firstIndex(of: method) ?? Self.methods.count
    let statusClass = min(status.code / 100, 5)
    counts[row * Self.statusClasses + statusClass].value.wrappingAdd(1, ordering: .relaxed)
    durations[statusClass].record(nanoseconds: watch.nanoseconds)
  }

  /// Writes what was counted so far to a registry.
  func export(to registry: PrometheusRegistry) {
    for (index, count) in counts.enumerated() {
      let (row, status) = index.quotientAndRemainder(dividingBy: Self.statusClasses)
      let value = count.value.load(ordering: .relaxed)
      guard value > 0 else { continue }
      let method = row < Self.methods.count ? Self.methods[row].rawValue : "other"
      registry.set(.requests, ["method": method, "route": route, "status": "\(status)xx"], to: Double(value))
    }
    for (status, recorded) in durations.enumerated() where recorded.snapshot.count > 0 {
      registry.set(.requestDurations, ["route": route, "status": "\(status)xx"], to: recorded)
    }
  }
}

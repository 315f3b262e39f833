import HTTPTypes
import Synchronization

/// Counts the requests of one route by method and class of status, in a table of fixed size: what a client sends never
/// becomes a label, and counting takes no lock.
final class RequestCounts: Sendable {
  private final class Count: Sendable {
    let value = Atomic<UInt64>(0)
  }

  private static let methods: [HTTPRequest.Method] = [.get, .put, .patch, .post, .delete, .head, .options]
  private static let statusClasses = 6

  private let route: String
  private let counts: [Count]

  /// Counts of the requests that metrics say are of `route`.
  init(route: String) {
    self.route = route
    counts = (0..<(Self.methods.count + 1) * Self.statusClasses).map { _ in Count() }
  }

  /// Counts a response.
  func count(_ method: HTTPRequest.Method, status: HTTPResponse.Status) {
    let row = Self.methods.firstIndex(of: method) ?? Self.methods.count
    counts[row * Self.statusClasses + min(status.code / 100, 5)].value.wrappingAdd(1, ordering: .relaxed)
  }

  /// Writes what was counted so far to a registry.
  func export(to registry: PrometheusRegistry) {
    for (index, count) in counts.enumerated() {
      let (row, status) = index.quotientAndRemainder(dividingBy: Self.statusClasses)
      let value = count.value.load(ordering: .relaxed)
      guard value > 0 else { continue }
      let method = row < Self.methods.count ? Self.methods[row].rawValue : "other"
      registry.setTotal(
        "keyway_requests_total", ["method": method, "route": route, "status": "\(status)xx"], to: Double(value))
    }
  }
}

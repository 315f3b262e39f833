internal import CoreMetrics
internal import HTTPTypes
internal import Synchronization

/// Counts requests by method, route and class of status, in a table of fixed size: what a client sends never becomes a
/// label, and counting takes no lock.
final class RequestMetrics: Sendable {
  private final class Cell: Sendable {
    let count = Atomic<UInt64>(0)
  }

  private static let methods: [HTTPRequest.Method] = [.get, .put, .patch, .post, .delete, .head, .options]
  private static let statusClasses = 6

  private let cells: [Cell]

  init() {
    let count = (Route.patterns.count + 1) * (Self.methods.count + 1) * Self.statusClasses
    cells = (0..<count).map { _ in Cell() }
  }

  /// Counts an answer; nil for a path where nothing is served.
  func count(_ method: HTTPRequest.Method, _ route: Route?, status: Int) {
    let routeIndex = route?.patternIndex ?? Route.patterns.count
    let methodIndex = Self.methods.firstIndex(of: method) ?? Self.methods.count
    let index = (routeIndex * (Self.methods.count + 1) + methodIndex) * Self.statusClasses + min(status / 100, 5)
    cells[index].count.wrappingAdd(1, ordering: .relaxed)
  }

  /// Writes what was counted so far to a factory's counters.
  func export(to registry: PrometheusRegistry) {
    for (index, cell) in cells.enumerated() {
      let count = cell.count.load(ordering: .relaxed)
      guard count > 0 else { continue }
      let status = index % Self.statusClasses
      let methodIndex = index / Self.statusClasses % (Self.methods.count + 1)
      let routeIndex = index / Self.statusClasses / (Self.methods.count + 1)
      let dimensions = [
        ("method", methodIndex < Self.methods.count ? Self.methods[methodIndex].rawValue : "other"),
        ("route", routeIndex < Route.patterns.count ? Route.patterns[routeIndex] : "other"),
        ("status", "\(status)xx"),
      ]
      registry.setTotal("keyway_requests_total", dimensions, to: Double(count))
    }
  }
}

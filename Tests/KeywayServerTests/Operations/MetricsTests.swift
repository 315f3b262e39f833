import Foundation
import KeywayServer
import TestKit
import Testing

@Suite("Metrics")
struct MetricsTests {
  private let server: TestServer

  init() throws { server = try TestServer() }

  private func lines() throws -> [Substring] {
    try server.client.send("GET", "/metrics").text.split(separator: "\n")
  }

  private func value(_ name: String, in lines: [Substring]) -> Double? {
    lines.first { $0.hasPrefix(name + " ") }.flatMap { Double($0.dropFirst(name.count + 1)) }
  }

  @Test("Each metric of the table has its help and its type, and no other is served")
  func table() throws {
    let stream = try server.subscribed("Account/1")
    try server.client.must("GET", "/v1/objects/Account/1")
    let lines = try lines()
    let served = lines.filter { $0.hasPrefix("# HELP ") }.map { String($0.split(separator: " ")[2]) }
    // The metrics that appear only after an event, or only on peers.
    let later: Set<Metric> = [
      .idempotencyReplays, .lags, .disconnects, .droppedLogLines, .conditions, .activeConditions, .expressionFailures,
      .peerBehind, .peerSilence, .peerPen, .overtakenBatches,
    ]
    #expect(Set(served).isSubset(of: Metric.allCases.map(\.rawValue)))
    #expect(Set(Metric.allCases.filter { !later.contains($0) }.map(\.rawValue)).subtracting(served) == [])
    for metric in Metric.allCases where served.contains(metric.rawValue) {
      #expect(lines.contains("# HELP \(metric.rawValue) \(metric.help)"))
      #expect(lines.contains("# TYPE \(metric.rawValue) \(metric.kind.rawValue)"))
    }
    #expect(value("keyway_streams", in: lines) == 1)
    _ = stream
  }

  @Test("The buckets of a route's durations grow, and the last has as many as were answered")
  func durations() throws {
    for _ in 0..<20 { try server.client.must("GET", "/v1/objects/Account/1") }
    for _ in 0..<3 { #expect(try server.client.send("GET", "/v1/objects/Account/none").status == 404) }
    let lines = try lines()
    for (status, count) in [("2xx", 20.0), ("4xx", 3.0)] {
      let labels = #"route="/v1/objects/{Entity}/{id}",status="\#(status)""#
      let head = "keyway_request_duration_seconds_bucket{\(labels),le="
      let buckets = lines.filter { $0.hasPrefix(head) }.compactMap {
        $0.split(separator: " ").last.flatMap { Double($0) }
      }
      #expect(buckets.count == 17)
      #expect(zip(buckets, buckets.dropFirst()).allSatisfy { $0 <= $1 })
      // The fixture's objects were put with the same status.
      let expected = status == "2xx" ? count + Double(Fixture.objects.count) : count
      #expect(buckets.last == expected)
      #expect(value("keyway_request_duration_seconds_count{\(labels)}", in: lines) == expected)
      #expect(try #require(value("keyway_request_duration_seconds_sum{\(labels)}", in: lines)) > 0)
    }
  }

  @Test("Each commit is measured once, and each batch that was written down")
  func commits() throws {
    for value in 0..<10 { try server.set("Account/1/visits", "\(value)") }
    #expect(try server.client.send("PUT", "/v1/objects/Account/1/visits", body: "\"x\"").status == 422)
    let lines = try lines()
    let revision = Double(try server.revision)
    #expect(value("keyway_commit_duration_seconds_count", in: lines) == revision)
    let batches = try #require(value("keyway_sync_duration_seconds_count", in: lines))
    #expect((1...revision).contains(batches))
  }

  @Test("Objects that end by themselves are counted, and the version is told")
  func gauges() throws {
    try server.client.must("PUT", "/v1/objects/Note/9", ["Keyway-Lifetime": "600"], body: "{}")
    let lines = try lines()
    #expect(value("keyway_leases", in: lines) == 1)
    #expect(value("keyway_store_bytes", in: lines) == 0)
    #expect(value(#"keyway_build_info{version="\#(Release.version)"}"#, in: lines) == 1)
    #expect(try #require(value("keyway_connections", in: lines)) >= 1)
    #expect(try #require(value("process_resident_memory_bytes", in: lines)) > 1_000_000)
    let descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    #expect(try #require(value("process_open_fds", in: lines)) <= Double(descriptors) + 100)
  }
}

import Foundation
import KeyValueModel

/// The figures of one benchmark.
struct FanoutReport: Hashable, Sendable {
  var subscribers = 0
  var messages = 0
  var connectSeconds = 0.0
  var delivered = 0
  var missing = 0
  var doubled = 0
  var outOfOrder = 0
  var closed = 0
  var deliverySeconds = 0.0
  var publishSeconds = 0.0
  var published = 0
  var latency = FanoutLatency()
  /// How much the server's memory grew while the subscribers connected.
  var residentBytesGrown: Int?
  /// What the server used from the first message to the last delivery.
  var cpuSeconds: Double?

  /// Whether every subscriber got every message once and in order.
  var isFaultless: Bool { missing == 0 && doubled == 0 && outOfOrder == 0 && closed == 0 }

  private var deliveriesPerSecond: Double { deliverySeconds > 0 ? Double(delivered) / deliverySeconds : 0 }
  private var publishedPerSecond: Double { publishSeconds > 0 ? Double(published) / publishSeconds : 0 }
  private var bytesPerSubscriber: Double? { residentBytesGrown.map { Double($0) / Double(max(subscribers, 1)) } }
  private var cpuMicrosecondsPerDelivery: Double? { cpuSeconds.map { $0 * 1e6 / Double(max(delivered, 1)) } }

  /// The figures as one JSON object.
  var json: String {
    var object: JSONObject = [
      "subscribers": .integer(Int64(subscribers)), "messages": .integer(Int64(messages)),
      "connectSeconds": Self.rounded(connectSeconds), "delivered": .integer(Int64(delivered)),
      "missing": .integer(Int64(missing)), "doubled": .integer(Int64(doubled)),
      "outOfOrder": .integer(Int64(outOfOrder)), "closed": .integer(Int64(closed)),
      "deliverySeconds": Self.rounded(deliverySeconds), "deliveriesPerSecond": Self.rounded(deliveriesPerSecond),
      "publishedPerSecond": Self.rounded(publishedPerSecond),
      "latencyMicroseconds": .object([
        "p50": .integer(latency.p50), "p90": .integer(latency.p90), "p99": .integer(latency.p99),
        "max": .integer(latency.max),
      ]),
    ]
    if let bytesPerSubscriber { object["serverBytesPerSubscriber"] = Self.rounded(bytesPerSubscriber) }
    if let cpuMicrosecondsPerDelivery {
      object["serverMicrosecondsPerDelivery"] = Self.rounded(cpuMicrosecondsPerDelivery)
    }
    return Value.object(object).json
  }

  /// The figures for a person.
  var text: String {
    var lines = [
      String(format: "connected %d in %.2f s", subscribers, connectSeconds),
      String(
        format: "delivered %d of %d in %.3f s: %.0f/s; published %.0f/s", delivered, subscribers * messages,
        deliverySeconds, deliveriesPerSecond, publishedPerSecond),
      "latency µs: p50 \(latency.p50)  p90 \(latency.p90)  p99 \(latency.p99)  max \(latency.max)",
      "missing \(missing)  doubled \(doubled)  out of order \(outOfOrder)  closed \(closed)",
    ]
    if let bytesPerSubscriber, let cpuMicrosecondsPerDelivery {
      lines.append(
        String(
          format: "server: %.2f KiB/subscriber, %.2f µs CPU/delivery", bytesPerSubscriber / 1024,
          cpuMicrosecondsPerDelivery))
    }
    return lines.joined(separator: "\n")
  }

  private static func rounded(_ number: Double) -> Value { .number((number * 1000).rounded() / 1000) }
}

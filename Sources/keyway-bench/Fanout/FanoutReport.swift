import Foundation
import KeyValueModel

/// The figures of a fan-out benchmark.
struct FanoutReport: BenchmarkReport {
  var subscribers = 0
  var messages = 0
  var connectSeconds = 0.0
  var delivered = 0
  var missing = 0
  var doubled = 0
  var outOfOrder = 0
  var closed = 0
  var deliverySeconds = 0.0
  var published = Publishers.Outcome()
  var latency = Latency()
  /// How much the server's memory grew while the subscribers connected.
  var residentBytesGrown: Int?
  /// What the server used from the first message to the last delivery.
  var cpuSeconds: Double?

  /// Whether every subscriber got every message once and in order.
  var isFaultless: Bool { missing == 0 && doubled == 0 && outOfOrder == 0 && closed == 0 }

  private var deliveriesPerSecond: Double { deliverySeconds > 0 ? Double(delivered) / deliverySeconds : 0 }
  private var publishedPerSecond: Double { published.seconds > 0 ? Double(published.writes) / published.seconds : 0 }
  private var bytesPerSubscriber: Double? { residentBytesGrown.map { Double($0) / Double(max(subscribers, 1)) } }
  private var cpuMicrosecondsPerDelivery: Double? { cpuSeconds.map { $0 * 1e6 / Double(max(delivered, 1)) } }

  var json: Value {
    var object: JSONObject = [
      "subscribers": .count(subscribers), "messages": .count(messages), "connectSeconds": .rounded(connectSeconds),
      "delivered": .count(delivered), "missing": .count(missing), "doubled": .count(doubled),
      "outOfOrder": .count(outOfOrder), "closed": .count(closed), "deliverySeconds": .rounded(deliverySeconds),
      "deliveriesPerSecond": .rounded(deliveriesPerSecond), "publishedPerSecond": .rounded(publishedPerSecond),
      "latencyMicroseconds": .object(latency.json),
    ]
    if let bytesPerSubscriber { object["serverBytesPerSubscriber"] = .rounded(bytesPerSubscriber) }
    if let cpuMicrosecondsPerDelivery { object["serverMicrosecondsPerDelivery"] = .rounded(cpuMicrosecondsPerDelivery) }
    return .object(object)
  }

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
}

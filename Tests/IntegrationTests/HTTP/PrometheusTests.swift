import Foundation
import KeyValueModel
import TestKit
import Testing

/// `/metrics` as Prometheus and Grafana read it.
@Suite("Prometheus")
struct PrometheusTests {
  private static let dashboard = PackageFolder.root + "/Config/deploy/grafana-dashboard.json"

  /// Returns a page of metrics after everything was counted at least once.
  private func page() throws -> String {
    let folder = try ScratchDirectory()
    let server = try ServerProcess("--store", folder.file("store"), settings: ["streams.perAddress": "1"])
    var stream: WireStream? = try server.client.stream("/v1/objects/Account/1")
    _ = try stream?.next()
    #expect(try server.client.send("GET", "/v1/streams", ["Accept": "text/event-stream"]).status == 429)
    for _ in 0..<2 {
      try server.client.must("POST", "/v1/objects/Note", ["Idempotency-Key": "a"], body: "{}")
    }
    try server.set("Account/1/balance", "7")
    stream = nil
    #expect(try server.hasNoStreams())
    return try server.client.send("GET", "/metrics").text
  }

  private func promtool(_ arguments: String...) throws -> ChildProcess {
    try ChildProcess.start(ChildProcess.find("promtool") ?? "/usr/bin/promtool", arguments)
  }

  /// The expressions of all panels.
  private func expressions() throws -> [String] {
    let data = try Data(contentsOf: URL(fileURLWithPath: Self.dashboard))
    let dashboard = try Value(json: Array(data))
    return dashboard["panels"].items.flatMap { $0["targets"].items }.compactMap { $0["expr"].text }
  }

  @Test("promtool finds nothing to say about the page")
  func lint() throws {
    let folder = try ScratchDirectory()
    let file = try folder.write(try page(), to: "page")
    let child = try ChildProcess.start(
      "/bin/sh", ["-c", "exec \"$0\" check metrics < \"$1\"", ChildProcess.find("promtool") ?? "promtool", file])
    let status = try child.exitStatus()
    #expect(status == 0, "\(child.output)\(child.errors)")
    #expect(child.output + child.errors == "")
  }

  @Test("Each metric that the dashboard asks for is served, and each question is PromQL")
  func dashboard() throws {
    let expressions = try expressions()
    #expect(expressions.count > 15)
    let page = try page()
    for expression in expressions {
      let names = expression.matches(of: /(keyway|process)_[a-z_]+/).map { String($0.output.0) }
      #expect(!names.isEmpty, "\(expression)")
      for name in names {
        let isServed = page.split(separator: "\n").contains { $0.hasPrefix(name + " ") || $0.hasPrefix(name + "{") }
        #expect(isServed || name == "keyway_lags_total", "\(name) of \(expression)")
      }
    }
    let rules = expressions.enumerated().map { index, expression in
      let plain = expression.replacing("$__rate_interval", with: "5m").replacing("$instance", with: ".*")
      return "      - { record: \"a:b\(index)\", expr: \(Value.string(plain).json) }\n"
    }
    let folder = try ScratchDirectory()
    let file = try folder.write("groups:\n  - name: panels\n    rules:\n" + rules.joined(), to: "rules.yaml")
    let child = try promtool("check", "rules", file)
    let status = try child.exitStatus()
    #expect(status == 0, "\(child.output)\(child.errors)")
  }
}

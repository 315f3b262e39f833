import Foundation
import TestKit
import Testing

/// `/v1/openapi.json` compared with the running program, by programs that know only the description.
@Suite("The description of the API, by others", .serialized)
struct DescriptionTests {
  private let server: ServerProcess
  private let scratch: ScratchDirectory
  private let document: String

  init() throws {
    // Streams end by themselves, since schemathesis reads each response to its end.
    server = try ServerProcess(settings: ["streams.lifetimeSeconds": "1"])
    scratch = try ScratchDirectory()
    document = scratch.file("openapi.json")
    let text = try server.client.send("GET", "/v1/openapi.json").body
    try Data(text).write(to: URL(fileURLWithPath: document))
  }

  @Test("It is valid OpenAPI 3.1")
  func validity() throws {
    let outcome = try ChildProcess.run(PackageFolder.python, ["-m", "openapi_spec_validator", document])
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
  }

  /// Runs random requests made from the description: `examples` for each operation that `arguments` choose.
  private func schemathesis(examples: Int, _ arguments: String...) throws {
    let checks = [
      "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
      "response_schema_conformance",
    ]
    let child = try ChildProcess.start(
      PackageFolder.python,
      [
        "-m", "schemathesis.cli", "run", document, "--url", server.url, "--checks", checks.joined(separator: ","),
        "--phases", "fuzzing", "--seed", "1", "--max-examples", "\(examples)", "--generation-database", "none",
        "--continue-on-failure", "--request-timeout", "120", "--no-color", "--warnings", "off", "--workers", "4",
        // A busy machine makes examples slowly.
        "--suppress-health-check", "too_slow",
      ] + arguments,
      environment: [
        "SCHEMATHESIS_HOOKS": "description_hooks", "PYTHONPATH": PackageFolder.script(""),
        "PYTHONDONTWRITEBYTECODE": "1",
      ], folder: scratch.path)
    let status = try child.exitStatus()
    #expect(status == 0, "\(child.output)\(child.errors)")
    #expect(child.output.contains("generated"))
  }

  @Test("schemathesis finds no answer that it does not describe")
  func answers() throws {
    try schemathesis(
      examples: 25, "--include-path-regex", "^/v1/(objects|transactions|streams$)", "--exclude-method", "OPTIONS")
    try schemathesis(examples: 2, "--exclude-path-regex", "^/v1/(objects|transactions|streams$)")
    try schemathesis(examples: 2, "--header", "Accept: text/event-stream", "--include-method", "GET")
    // An operation without a success would prove nothing about its responses.
    let metrics = String(decoding: try server.client.send("GET", "/metrics").body, as: UTF8.self)
    for (method, route) in [
      ("GET", "/v1/objects"), ("GET", "/v1/objects/{Entity}"), ("POST", "/v1/objects/{Entity}"),
      ("GET", "/v1/objects/{Entity}/{id}"), ("PUT", "/v1/objects/{Entity}/{id}"),
      ("PATCH", "/v1/objects/{Entity}/{id}"), ("GET", "/v1/objects/{Entity}/{id}/{keyPath}"),
      ("POST", "/v1/transactions"), ("POST", "/v1/streams"), ("GET", "/v1/journal"),
    ] {
      for status in ["2xx", "4xx"] where (route, status) != ("/v1/journal", "4xx") {
        let line = #"keyway_requests_total{method="\#(method)",route="\#(route)",status="\#(status)"}"#
        #expect(metrics.contains(line), "\(method) \(route) was never answered \(status)")
      }
    }
  }
}

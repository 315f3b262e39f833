import ArgumentParser
import CommandSupport
import Testing

@Suite("The server address of a command") struct ServerAddressTests {
  @Test(
    "the environment says it: KEYWAY_SERVER, else the host and the port of the server",
    arguments: [
      ([:], "http://127.0.0.1:8080"), (["KEYWAY_PORT": "9001"], "http://127.0.0.1:9001"),
      (["KEYWAY_HOST": "box", "KEYWAY_PORT": ""], "http://box:8080"),
      (["KEYWAY_HOST": "0.0.0.0"], "http://127.0.0.1:8080"), (["KEYWAY_HOST": "::"], "http://[::1]:8080"),
      (["KEYWAY_HOST": "fe80::1", "KEYWAY_PORT": "81"], "http://[fe80::1]:81"),
      (["KEYWAY_HOST": "[::1]"], "http://[::1]:8080"),
      (["KEYWAY_SERVER": "https://other/", "KEYWAY_PORT": "1"], "https://other/"),
      (["KEYWAY_SERVER": "", "KEYWAY_PORT": "7"], "http://127.0.0.1:7"),
      (["KEYWAY_PORT": "tcp://10.96.0.10:8000", "KEYWAY_SERVICE_HOST": "10.96.0.10"], "http://127.0.0.1:8080"),
    ] as [([String: String], String)])
  func url(_ environment: [String: String], _ expected: String) throws {
    #expect(try ServerAddress.url(in: environment) == expected)
  }

  @Test(
    "the configuration file of the folder says what the environment leaves open, but never TLS",
    arguments: [
      ([:], "host: 0.0.0.0\nport: 9001\ntls:\n  certificate: a.pem\n", "http://127.0.0.1:9001"),
      (["KEYWAY_PORT": "7"], "host: box\nport: 9001\n", "http://box:7"),
      (["KEYWAY_HOST": "a"], "port: \"9001\"\n", "http://a:9001"), ([:], "store: data\n", "http://127.0.0.1:8080"),
      (["KEYWAY_SERVER": "http://other"], "port: {", "http://other"),
      (["KEYWAY_HOST": "a", "KEYWAY_PORT": "7"], "port: {", "http://a:7"), ([:], "", "http://127.0.0.1:8080"),
    ] as [([String: String], String, String)])
  func file(_ environment: [String: String], _ text: String, _ expected: String) throws {
    let url = try ServerAddress.url(in: environment) { () throws(ValidationError) in try ServerFile(text: text) }
    #expect(url == expected)
  }

  @Test(
    "a configuration file that names no server that can be asked is a mistake with its name",
    arguments: ["port: 0", "host: unix:/run/keyway", "port: {", "port: x"])
  func file(_ text: String) {
    #expect {
      try ServerAddress.url(in: [:]) { () throws(ValidationError) in try ServerFile(text: text) }
    } throws: { error in
      let message = (error as? ValidationError)?.message ?? ""
      return message.contains("keyway.yaml") && message.contains("--server")
    }
  }

  @Test(
    "a host or a port that cannot be asked is a mistake",
    arguments: [
      ["KEYWAY_PORT": "0"], ["KEYWAY_PORT": "70000"], ["KEYWAY_PORT": "http"], ["KEYWAY_HOST": "unix:/run/keyway"],
    ])
  func unreachable(_ environment: [String: String]) {
    #expect(throws: (any Error).self) { try ServerAddress.url(in: environment) }
  }
}

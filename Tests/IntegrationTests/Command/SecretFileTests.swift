import Foundation
import TestKit
import Testing

@Suite("Files that hold secrets")
struct SecretFileTests {
  private static let publicKey = """
    {"keys":[{"kty":"OKP","alg":"EdDSA","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}
    """
  private static let privateKey = publicKey.replacing(
    #""alg""#, with: #""d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","alg""#)

  /// Returns the warnings of a server with these settings.
  private static func warnings(_ settings: [String: String]) throws -> [String] {
    let server = try ServerProcess(settings: settings)
    defer { _ = try? server.stop() }
    return server.child.errors.split(separator: "\n").map(String.init).filter { $0.contains("warning") }
  }

  @Test("A secret that others can read is warned of, with the chmod to run; a public key, or one's own file, is not")
  func warnings() throws {
    let folder = try ScratchDirectory()
    let keys = folder.file("keys.json")
    _ = try ChildProcess.run(PackageFolder.keyway, ["token", "--new-key", "--keys", keys])
    let attributes = try FileManager.default.attributesOfItem(atPath: keys)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let secrets = [keys, try folder.write(Self.privateKey, to: "private.json")]
    for file in secrets {
      for mode in [0o644, 0o640, 0o604] {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        let warnings = try Self.warnings(["access.keys": file])
        #expect(
          warnings.contains { $0.contains("access.keys: ") && $0.contains("run chmod 600 \(file)") }, "\(warnings)")
      }
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
      #expect(try Self.warnings(["access.keys": file]).isEmpty)
    }
    #expect(try Self.warnings(["access.keys": folder.write(Self.publicKey, to: "public.json")]).isEmpty)
    let token = try folder.write("abc", to: "a token")
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: token)
    let warnings = try Self.warnings(["nodes.tokenFile": token])
    #expect(warnings.contains { $0.contains("nodes.tokenFile: ") && $0.contains("run chmod 600 '\(token)'") })
  }
}

import Foundation
import KeyValueModel
import KeywayServer
import TestKit
import Testing

@testable import KeywayBrowser

@Suite("The program's files for browsers") struct ProgramFileTests {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../Sources/KeywayBrowser/Resources").standardizedFileURL

  @Test("The program has every file of the folder, byte for byte, and no other")
  func embedding() throws {
    let names = try #require(FileManager.default.subpaths(atPath: Self.folder.path)).filter { $0.contains(".") }
    let files = BrowserFile.all()
    #expect(Set(files.map(\.name)) == Set(names))
    for file in files {
      #expect(Data(file.bytes) == (try Data(contentsOf: Self.folder.appending(path: file.name))), "\(file.name)")
    }
    #expect(Set(files.map(\.tag)).count == files.count)
  }

  @Test("Each is served with its type, a tag, and a policy that lets it load nothing from elsewhere")
  func serving() throws {
    let server = try TestServer(objects: [])
    for file in BrowserFile.all() {
      let response = try server.client.send("GET", "/" + file.name)
      #expect(response.status == 200 && response.body == file.bytes, "\(file.name)")
      let policy = try #require(response["Content-Security-Policy"])
      #expect(policy.hasPrefix("default-src 'none'; ") && !policy.contains("unsafe") && !policy.contains("*"))
      #expect(response["X-Content-Type-Options"] == "nosniff")
      #expect(response["Cache-Control"] == "no-cache")
      let tag = try #require(response["ETag"])
      let again = try server.client.send("GET", "/" + file.name, ["If-None-Match": "W/\(tag), \"x\""])
      #expect(again.status == 304 && again.body.isEmpty && again["ETag"] == tag)
      #expect(again["Content-Type"] == nil)
      #expect(try server.client.send("GET", "/" + file.name, ["If-None-Match": "\"x\""]).status == 200)
      #expect(try server.client.send("GET", "/" + file.name, ["If-Match": "\"x\""]).problem == "stale-revision")
    }
    #expect(try server.client.send("GET", "/keyway.js")["Content-Type"] == "text/javascript; charset=utf-8")
    let page = try server.client.send("GET", "/")
    #expect(page["Content-Type"] == "text/html; charset=utf-8")
    #expect(try server.client.send("GET", "/console/").body == page.body)
    #expect(try server.client.send("GET", "/console")["Location"] == "/console/")
    #expect(try server.client.send("GET", "/console/nothing.js").problem == "not-found")
    #expect(try server.client.send("GET", "/console/..%2Fkeyway.js").problem == "not-found")
  }

  @Test("They are for everybody on a server with keys, also behind a token that is not good")
  func withoutToken() throws {
    let guarded = try GuardedServer()
    for headers in [[:], ["Cookie": "keyway_session=x.y"], ["Authorization": "Bearer x"], guarded.reader] {
      for target in ["/", "/keyway.js", "/keyway.d.ts", "/console/"] {
        #expect(try guarded.client.send("GET", target, headers).status == 200, "\(target)")
        #expect(try guarded.client.send("HEAD", target, headers).status == 200, "\(target)")
      }
    }
  }

  @Test("Without the console there is only the library")
  func withoutConsole() throws {
    let server = try TestServer(objects: []) { $0.files.console = false }
    for target in ["/", "/console", "/console/", "/console/index.html", "/console/main.js"] {
      #expect(try server.client.send("GET", target).problem == "not-found", "\(target)")
    }
    #expect(try server.client.send("GET", "/keyway.js").status == 200)
    #expect(try server.client.send("GET", "/keyway.d.ts").status == 200)
  }
}

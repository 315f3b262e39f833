import Foundation
import Glibc
import HTTPServer
import KeyValueModel
import TestKit
import Testing

@testable import KeywayServer

/// A folder of an application, and a server of it.
private struct PublishedFolder {
  let outside: ScratchDirectory
  let root: String

  init() throws {
    outside = try ScratchDirectory()
    root = try outside.directory("app")
    try outside.directory("app-other").write("/secret.txt", "not this application's")
    for name in ["/sub", "/empty", "/.git", "/sub/.hidden"] { #expect(mkdir(root + name, 0o700) == 0) }
    try root.write("/index.html", "<h1>app</h1>")
    try root.write("/sub/index.html", "<h1>sub</h1>")
    try root.write("/.env", "secret")
    try root.write("/.git/config", "secret")
    try root.write("/sub/.hidden/a.txt", "secret")
    try root.write("/a b ü.TXT", "text")
    try root.write("/0123456789.bin", "0123456789")
    try root.write("/healthz", "not the program's")
    try outside.path.write("/secret.txt", "secret")
  }

  func link(_ name: String, to target: String) { #expect(symlink(target, root + name) == 0) }

  func server(_ configure: (inout KeywayServer.Configuration) -> Void = { _ in }) throws -> TestServer {
    try TestServer(objects: []) {
      $0.files.folder = root
      configure(&$0)
    }
  }
}

extension String {
  fileprivate func write(_ name: String, _ text: String) throws {
    try text.write(toFile: self + name, atomically: false, encoding: .utf8)
  }
}

@Suite("An application's own files") struct PublicFolderTests {
  @Test("They come with type and tag; the program's own paths win, and the console is still there")
  func serving() throws {
    let folder = try PublishedFolder()
    let server = try folder.server()
    let page = try server.client.send("GET", "/")
    #expect(page.text == "<h1>app</h1>" && page["Content-Type"] == "text/html; charset=utf-8")
    #expect(page["Content-Security-Policy"] == nil && page["X-Content-Type-Options"] == "nosniff")
    for query in ["v=3", "v=%E4", "utm_source=a&utm_source=b", "%"] {
      #expect(try server.client.send("GET", "/index.html?\(query)").body == page.body, "\(query)")
    }
    #expect(try server.client.send("GET", "/sub/").text == "<h1>sub</h1>")
    let redirect = try server.client.send("GET", "/s%75b?a=%20b&c")
    #expect(redirect.status == 308 && redirect["Location"] == "/sub/?a=%20b&c")
    let text = try server.client.send("GET", "/a%20b%20%C3%BC.TXT")
    #expect(text.text == "text" && text["Content-Type"] == "text/plain; charset=utf-8")
    #expect(try server.client.send("GET", "/0123456789.bin")["Content-Type"] == "application/octet-stream")
    let head = try server.client.send("HEAD", "/0123456789.bin", ["Range": "bytes=0-1"])
    #expect(head.status == 200 && head["Content-Length"] == "10" && head["Accept-Ranges"] == "bytes")
    #expect(try server.client.send("GET", "/healthz").text != "not the program's")
    #expect(try server.client.send("GET", "/console/").text.contains("<html"))
    #expect(try server.client.send("GET", "/keyway.js").status == 200)
    #expect(try server.client.send("GET", "/v1/nothing").problem == "not-found")
    #expect(try server.client.send("PUT", "/index.html", body: "1").status == 405)
    #expect(try server.client.send("OPTIONS", "/index.html")["Allow"] == "GET, HEAD, OPTIONS")
  }

  @Test("Without a page of its own the application leaves / to the console; without either there is nothing")
  func withoutPage() throws {
    let folder = try PublishedFolder()
    #expect(unlink(folder.root + "/index.html") == 0)
    #expect(try folder.server().client.send("GET", "/")["Content-Security-Policy"] != nil)
    #expect(try folder.server { $0.files.console = false }.client.send("GET", "/").problem == "not-found")
  }

  @Test("Browsers find the application's icon, and without one an answer that says for a while that there is none")
  func icon() throws {
    let folder = try PublishedFolder()
    let server = try folder.server()
    for client in [server.client, try TestServer(objects: []).client] {
      let none = try client.send("GET", "/favicon.ico")
      #expect(none.status == 204 && none.body.isEmpty && none["Cache-Control"] == "max-age=86400")
    }
    try folder.root.write("/favicon.ico", "icon")
    let icon = try server.client.send("GET", "/favicon.ico")
    #expect(icon.text == "icon" && icon["Content-Type"] == "image/vnd.microsoft.icon" && icon["ETag"] != nil)
  }

  @Test(
    "No path leads out of the folder, to a name with a dot in front, or to what is no file",
    arguments: [
      "/.env", "/%2eenv", "/.git/config", "/sub/.hidden/a.txt", "/..", "/../secret.txt", "/%2e%2e/secret.txt",
      "/sub/../../secret.txt", "/sub/..%2f..%2fsecret.txt", "/..%5csecret.txt", "/%2e%2e%2fsecret.txt", "//etc/passwd",
      "/%2fetc/passwd", "/sub//index.html", "/./index.html", "/index.html/", "/index.html%00.txt", "/empty", "/empty/",
      "/pipe", "/out.txt", "/out/secret.txt", "/absolute", "/other/secret.txt", "/dots", "/proc/self/cmdline",
      "/loop", "/missing", "/device",
    ])
  func wayOut(_ target: String) throws {
    let folder = try PublishedFolder()
    folder.link("/out.txt", to: "../secret.txt")
    folder.link("/out", to: "..")
    folder.link("/absolute", to: folder.outside.path + "/secret.txt")
    folder.link("/other", to: "../app-other")
    folder.link("/dots", to: ".env")
    folder.link("/proc", to: "/proc")
    folder.link("/loop", to: "loop")
    folder.link("/device", to: "/dev/zero")
    #expect(mkfifo(folder.root + "/pipe", 0o600) == 0)
    let response = try folder.server().client.send("GET", target)
    #expect(response.status == 404 && response.problem == "not-found", "\(response.text.prefix(80))")
  }

  @Test("A link within the folder is followed")
  func innerLink() throws {
    let folder = try PublishedFolder()
    folder.link("/inner", to: "sub")
    folder.link("/page.html", to: folder.root + "/sub/index.html")
    let server = try folder.server()
    #expect(try server.client.send("GET", "/inner/").text == "<h1>sub</h1>")
    #expect(try server.client.send("GET", "/page.html").text == "<h1>sub</h1>")
  }

  @Test(
    "A hard link to a file of another owner is not served, and says why; one of the folder's owner is",
    .enabled(if: geteuid() == 0, "only the superuser gives files away"))
  func hardLinks() throws {
    let folder = try PublishedFolder()
    #expect(link(folder.root + "/sub/index.html", folder.root + "/copy.html") == 0)
    try folder.outside.path.write("/of-another.txt", "secret")
    #expect(chown(folder.outside.path + "/of-another.txt", 12_345, 12_345) == 0)
    #expect(link(folder.outside.path + "/of-another.txt", folder.root + "/linked.txt") == 0)
    try folder.root.write("/given.txt", "given")
    #expect(chown(folder.root + "/given.txt", 12_345, 12_345) == 0)
    let server = try folder.server()
    #expect(try server.client.send("GET", "/copy.html").text == "<h1>sub</h1>")
    #expect(try server.client.send("GET", "/given.txt").text == "given")
    let refused = try server.client.send("GET", "/linked.txt")
    #expect(refused.status == 404 && refused.problem == "not-found" && !refused.text.contains("secret"))
    #expect(refused.text.contains("several hard links and another owner"), "\(refused.text)")
    #expect(unlink(folder.outside.path + "/of-another.txt") == 0)
    #expect(try server.client.send("GET", "/linked.txt").text == "secret")
  }

  @Test("A tag holds as long as the file; a range is of that version")
  func conditions() throws {
    let folder = try PublishedFolder()
    let client = try folder.server().client
    func get(_ headers: [String: String]) throws -> WireResponse {
      try client.send("GET", "/0123456789.bin", headers)
    }
    let tag = try #require(get([:])["ETag"])
    #expect(try get(["If-None-Match": tag]).status == 304)
    #expect(try get(["If-None-Match": tag])["Content-Length"] == get([:])["Content-Length"])
    #expect(try get(["If-None-Match": tag, "Range": "bytes=0-1"]).status == 304)
    let part = try get(["Range": "bytes=2-4", "If-Range": tag])
    #expect(part.status == 206 && part.text == "234" && part["Content-Range"] == "bytes 2-4/10")
    #expect(part["Content-Length"] == "3" && part["ETag"] == tag)
    #expect(try get(["Range": "bytes=-3"]).text == "789")
    #expect(try get(["Range": "bytes=8-"]).text == "89")
    #expect(try get(["Range": "bytes=0-1,3-4"]).text == "0123456789")
    #expect(try get(["Range": "bytes=2-4", "If-Range": "W/\(tag)"]).status == 200)
    let beyond = try get(["Range": "bytes=10-"])
    #expect(beyond.problem == "range-not-satisfiable" && beyond["Content-Range"] == "bytes */10")
    try folder.root.write("/0123456789.bin", "0123456789abc")
    let new = try get(["If-None-Match": tag, "Range": "bytes=2-4", "If-Range": tag])
    #expect(new.status == 200 && new.text == "0123456789abc" && new["ETag"] != tag)
    #expect(try get(["If-Match": tag]).problem == "stale-revision")
  }

  @Test("A large file comes from the disk, whole and in parts")
  func largeFile() throws {
    let folder = try PublishedFolder()
    let bytes = (0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    try Data(bytes).write(to: URL(fileURLWithPath: folder.root + "/large.wasm"))
    let client = try folder.server().client
    let whole = try client.send("GET", "/large.wasm")
    #expect(whole.body == bytes && whole["Content-Type"] == "application/wasm")
    let part = try client.send("GET", "/large.wasm", ["Range": "bytes=100-2999999"])
    #expect(part.body == Array(bytes[100..<3_000_000]) && part["Content-Range"] == "bytes 100-2999999/3000001")
    #expect(try client.send("HEAD", "/large.wasm")["Content-Length"] == "3000001")
  }

  @Test("Files that are being sent are counted for their clients; one too many is overloaded, until one has ended")
  func openFiles() throws {
    let folder = try PublishedFolder()
    #expect(truncate(folder.root.appending("/index.html"), 50_000_000) == 0)
    let server = try folder.server {
      $0.files.openFiles.files = 3
      $0.files.openFiles.filesPerClient = 2
    }
    // They send requests and do not read, and the kernel does not buffer so much.
    func beginReading(from source: String) throws -> WireSocket {
      let address = SocketAddress(port: server.server.port, from: source, to: "127.0.0.1")
      let socket = try WireSocket(address, receiveBufferBytes: 4096)
      try socket.send("GET / HTTP/1.1\r\nHost: 127.0.0.1:\(server.server.port)\r\n\r\n")
      #expect(try WireReader(socket).head(before: Deadline()).status == 200)
      return socket
    }
    let (first, second) = (try beginReading(from: "127.0.0.2"), try beginReading(from: "127.0.0.2"))
    let refused = try server.client(from: "127.0.0.2").send("GET", "/")
    #expect(refused.problem == "overloaded" && refused["Retry-After"] != nil)
    let third = try beginReading(from: "127.0.0.3")
    #expect(try server.client(from: "127.0.0.4").send("GET", "/").problem == "overloaded")
    #expect(try server.client(from: "127.0.0.4").send("GET", "/0123456789.bin").status == 200)
    for socket in [first, second, third] { socket.close() }
    #expect(try Deadline().awaits { try server.client(from: "127.0.0.2").send("HEAD", "/").status == 200 })
  }

  @Test("A setting that names no folder keeps the server from starting", arguments: ["/nowhere/at/all", "/etc/passwd"])
  func mistakes(_ path: String) {
    #expect(throws: PublicFolder.Mistake.self) { try PublicFolder(path: path) }
  }
}

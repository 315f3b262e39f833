import Glibc
package import HTTPServer
import HTTPTypes
import KeywayBrowser
import Support

/// The files for browsers: those of the program, and an application's own.
///
/// They are for everybody, whatever token is sent, since none holds data.
package struct FileHandlers: Sendable {
  /// Whether there are an application's own files.
  let hasFolder: Bool
  private let currentFolder: Locked<PublicFolder?>
  private let hasConsole: Bool
  private let files: [String: BrowserFile]
  package let openFiles: OpenFiles

  /// Files up to this size are read at once, and larger ones are sent from the disk.
  private static let readBytes = 32 << 10
  private static let consolePage = "console/index.html"
  /// A page of the program loads what the program has, talks to its own server alone, and is framed by no page (CSP 3).
  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// What the options name. Throws a `PublicFolder.Mistake`.
  init(_ options: FileOptions) throws(PublicFolder.Mistake) {
    hasFolder = options.folder != FileOptions.none
    currentFolder = Locked(hasFolder ? try PublicFolder(path: options.folder) : nil)
    hasConsole = options.console
    files = Dictionary(BrowserFile.all().map { ($0.name, $0) }) { first, _ in first }
    openFiles = OpenFiles(limits: options.openFiles)
  }

  /// The application's own files; nil where there are none.
  private var folder: PublicFolder? { currentFolder.withLock { $0 } }

  /// Serves the application's files from a folder that may be another one from now on, or stand elsewhere under the
  /// same name. Where there were none at the start, there are none. Throws a `PublicFolder.Mistake`; then nothing
  /// changes.
  func serve(_ path: String) throws(PublicFolder.Mistake) {
    guard hasFolder, path != FileOptions.none else { return }
    let folder = try PublicFolder(path: path)
    currentFolder.withLock { $0 = folder }
  }

  /// A file of the program that is always there.
  func library(_ name: String) -> Route.Handler {
    { [self] (request, _) throws(Problem) in .response(try file(named: name, request)) }
  }

  /// `/`: the application's page, where it has one, and otherwise the console.
  func front(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    if let folder, let entry = folder.entry([""]) { return .response(try response(entry, request, context)) }
    guard hasConsole else { throw Self.notFound }
    return .response(try file(named: Self.consolePage, request))
  }

  /// `/console`: the way to the slash behind it.
  func consoleFolder(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard hasConsole else { return try published(request, context) }
    return .response(Response(status: .permanentRedirect, fields: [.location: "/console/"]))
  }

  /// `/console/`, and what the console is made of.
  func console(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard hasConsole else { return try published(request, context) }
    let name = context[.file]
    return .response(try file(named: name.isEmpty ? Self.consolePage : "console/" + name, request))
  }

  /// `/favicon.ico`, which a browser asks for with every page: the application's, where it has one, and otherwise an
  /// answer that says for a day that there is none.
  func icon(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    if let folder, let entry = folder.entry(context.target.segments) {
      return .response(try response(entry, request, context))
    }
    return .response(Response(status: .noContent, fields: [.cacheControl: "max-age=86400"]))
  }

  /// An application's own file.
  func published(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard let folder, let entry = folder.entry(context.target.segments) else { throw Self.notFound }
    return .response(try response(entry, request, context))
  }

  private static var notFound: Problem { Problem(.notFound, "nothing is served under this path") }

  // MARK: The program's files

  private func file(named name: String, _ request: borrowing Request) throws(Problem) -> Response {
    guard let file = files[name] else { throw Self.notFound }
    let isUnchanged = try ReadConditions(of: request).isUnchanged(file.tag)
    var response =
      isUnchanged
      ? Response(status: .notModified, fields: [:], withholding: file.bytes.count)
      : Response(status: .ok, body: file.bytes)
    response.fields[.eTag] = "\"\(file.tag)\""
    response.fields[.cacheControl] = "no-cache"
    if response.status == .ok { response.fields[.contentType] = MediaType.of(name) }
    response.fields[.contentSecurityPolicy] = Self.policy
    response.fields[.referrerPolicy] = "no-referrer"
    return response
  }

  // MARK: An application's files

  private func response(
    _ entry: PublicFolder.Entry, _ request: borrowing Request, _ context: RequestContext
  ) throws(Problem) -> Response {
    switch entry {
    case .foreignLink:
      throw Problem(
        .notFound,
        "the file has several hard links and another owner than the public folder, so it is not served; copy it into "
          + "the folder, or give it the folder's owner")
    case .exhausted: throw Problem(.overloaded, "no descriptor is left for a file")
    case .folder:
      // With the slash its page's links lead to its own files.
      let query = request.target.firstIndex(of: "?").map { request.target[$0...] } ?? ""
      return Response(status: .permanentRedirect, fields: [.location: context.target.path + "/\(query)"])
    case .file(let file):
      var descriptor: Int32? = file.descriptor
      defer { if let descriptor { close(descriptor) } }
      var response =
        if try ReadConditions(of: request).isUnchanged(file.tag) {
          Response(status: .notModified, fields: [:], withholding: file.count)
        } else {
          try content(of: file, &descriptor, request)
        }
      response.fields[.eTag] = "\"\(file.tag)\""
      response.fields[.cacheControl] = "no-cache"
      if response.status != .notModified {
        response.fields[.contentType] = MediaType.of(file.name)
        response.fields[.acceptRanges] = "bytes"
      }
      return response
    }
  }

  /// The file, or the part of it that is asked for. Takes the descriptor where it is sent from the disk.
  private func content(
    of file: PublicFolder.File, _ descriptor: inout Int32?, _ request: borrowing Request
  ) throws(Problem) -> Response {
    var response = Response(status: .ok)
    var bytes = 0..<file.count
    // A range is of one version of the file (RFC 9110 §13.1.5).
    let isSameVersion = request.header(.ifRange).map { $0 == "\"\(file.tag)\"" } ?? true
    switch ByteRange(request.method == .get && isSameVersion ? request.header(.range) : nil, count: file.count) {
    case .all: break
    case .part(let range):
      response.status = .partialContent
      response.fields[.contentRange] = "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(file.count)"
      bytes = range
    case .unsatisfiable:
      throw Problem(.rangeNotSatisfiable, "the file has \(file.count) bytes")
        .with(.contentRange, "bytes */\(file.count)")
    }
    if bytes.count <= Self.readBytes {
      response.body = Self.read(bytes, of: file.descriptor)
      return response
    }
    guard let lease = openFiles.lease(for: request.client) else {
      throw Problem(.overloaded, "as many files are being sent as files.open and files.openPerClient allow")
    }
    response.file = FileContent(
      descriptor: file.descriptor, offset: bytes.lowerBound, count: bytes.count, lease: lease)
    descriptor = nil
    return response
  }

  /// Those bytes of a file; fewer where it has been cut short since it was opened.
  private static func read(_ range: Range<Int>, of descriptor: Int32) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: range.count) { buffer, count in
      while count < range.count {
        let read = pread(
          descriptor, buffer.baseAddress.map { $0 + count }, range.count - count, off_t(range.lowerBound + count))
        guard read > 0 else { break }
        count += read
      }
    }
  }
}

/// Which files a server has for browsers.
package struct FileOptions: Sendable {
  /// What `public` says where there is no folder.
  package static let none = "none"

  /// Whether there is the console. `console`.
  package var console = true
  /// The folder of an application's own files, or `none`. `public`.
  package var folder = none
  /// Bounds of those of them that are being sent. `files.open`, `files.openPerClient`.
  package var openFiles = OpenFiles.Limits()

  /// The defaults.
  package init() {}
}

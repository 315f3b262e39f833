import Glibc
package import HTTPServer
import HTTPTypes
import KeywayBrowser
import Support

/// The files for browsers: those of the program, and an application's own.
///
/// All clients may read them, whatever token they send, because no file holds data.
package struct FileHandlers: Sendable {
  /// True if the application has files of its own.
  let hasFolder: Bool
  private let currentFolder: Locked<PublicFolder?>
  private let hasConsole: Bool
  private let files: [String: BrowserFile]
  package let openFiles: OpenFiles

  /// The maximum size of a file that is read at once, in bytes. Larger files are sent from the disk.
  private static let readBytes = 32 << 10
  private static let consolePage = "console/index.html"
  /// The policy for a page of the program: it loads only the files of the program, connects only to its own server, and
  /// is not framed by any page (CSP 3).
  private static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; worker-src 'self'; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  /// Creates handlers for the files that the options name. Throws a `PublicFolder.Mistake`.
  init(_ options: FileOptions) throws(PublicFolder.Mistake) {
    hasFolder = options.folder != FileOptions.none
    currentFolder = Locked(hasFolder ? try PublicFolder(path: options.folder) : nil)
    hasConsole = options.console
    files = Dictionary(BrowserFile.all().map { ($0.name, $0) }) { first, _ in first }
    openFiles = OpenFiles(limits: options.openFiles)
  }

  /// The application's own files; nil if it has none.
  private var folder: PublicFolder? { currentFolder.withLock { $0 } }

  /// Serves the application's files from a folder, which may be a different one from now on, or a new one under the
  /// same name. Does nothing if there was no folder at the start. Throws a `PublicFolder.Mistake`; then nothing
  /// changes.
  func serve(_ path: String) throws(PublicFolder.Mistake) {
    guard hasFolder, path != FileOptions.none else { return }
    let folder = try PublicFolder(path: path)
    currentFolder.withLock { $0 = folder }
  }

  /// Returns the handler of a file of the program that is always served.
  func library(_ name: String) -> Route.Handler {
    { [self] (request, _) throws(Problem) in .response(try file(named: name, request)) }
  }

  /// `/`: the application's page, if it has one, and otherwise the console.
  func front(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    if let folder, let entry = folder.entry([""]) { return .response(try response(entry, request, context)) }
    guard hasConsole else { throw Self.notFound }
    return .response(try file(named: Self.consolePage, request))
  }

  /// `/console`: redirects to the path with a slash at the end.
  func consoleFolder(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard hasConsole else { return try published(request, context) }
    return .response(Response(status: .permanentRedirect, fields: [.location: "/console/"]))
  }

  /// `/console/`, and the files of the console.
  func console(_ request: borrowing Request, _ context: RequestContext) throws(Problem) -> HandlerResponse {
    guard hasConsole else { return try published(request, context) }
    let name = context[.file]
    return .response(try file(named: name.isEmpty ? Self.consolePage : "console/" + name, request))
  }

  /// `/favicon.ico`, which browsers request with every page: the application's, if it has one, and otherwise a response
  /// that says for a day that there is none.
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
      // With the slash, the links of the page lead to the files of its own folder.
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

  /// Returns the file, or the part of it that is requested. Takes the descriptor if the content is sent from the disk.
  private func content(
    of file: PublicFolder.File, _ descriptor: inout Int32?, _ request: borrowing Request
  ) throws(Problem) -> Response {
    var response = Response(status: .ok)
    var bytes = 0..<file.count
    // A range applies to one version of the file (RFC 9110 §13.1.5).
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

  /// Returns bytes of a file, or fewer if it has been cut short since it was opened.
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

/// The files that a server has for browsers.
package struct FileOptions: Sendable {
  /// The value of `public` if there is no folder.
  package static let none = "none"

  /// True if the console is served. `console`.
  package var console = true
  /// The folder of an application's own files, or `none`. `public`.
  package var folder = none
  /// The limits on the files of the folder that are being sent. `files.open`, `files.openPerClient`.
  package var openFiles = OpenFiles.Limits()

  /// The defaults.
  package init() {}
}

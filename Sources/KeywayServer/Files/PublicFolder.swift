import CLinux
import Glibc

/// The folder of an application's own files, which the setting `public` names.
///
/// A path is opened without reading it (`O_PATH`), then the kernel is asked where it has led. A file that is not below
/// the folder, by whatever links, is treated as missing. So no file can be put in its place in between, and no device
/// is opened.
///
/// The kernel cannot say whether another name of the same file, a hard link, is outside of the folder. So a file with
/// several names is served only if it has the same owner as the folder: the owner could as well copy it there.
final class PublicFolder: Sendable {
  /// The reason why a folder cannot be served, in a sentence.
  struct Mistake: Error, CustomStringConvertible {
    let description: String
  }

  /// An open file of the folder.
  struct File {
    /// Its name in the last folder.
    let name: String
    /// The size when the file was opened, in bytes.
    let count: Int
    /// The value of its `ETag` without the quotation marks: the identity of the file, its length, and the time when it
    /// was written.
    let tag: String
    /// The descriptor for reading; the receiver closes it.
    let descriptor: Int32
  }

  /// The entry that a path leads to.
  enum Entry {
    case file(File)
    /// A folder with an `index.html`, requested without a slash at the end.
    case folder
    /// A file that has other hard links, and another owner than the folder.
    case foreignLink
    /// The process has no descriptor left.
    case exhausted
  }

  /// The real path of the folder.
  private let root: String
  private let owner: uid_t

  /// Creates the public folder at a path. It must exist now.
  init(path: String) throws(Mistake) {
    guard let resolved = realpath(path, nil) else {
      throw Mistake(description: "public is \(path): \(String(cString: strerror(errno)))")
    }
    defer { free(resolved) }
    root = String(cString: resolved)
    var status = stat()
    guard stat(root, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      throw Mistake(description: "public is \(path), which is not a folder")
    }
    owner = status.st_uid
  }

  /// Returns the entry that the segments of a path name, or nil if there is none. An empty last segment names the
  /// folder's `index.html`.
  func entry(_ segments: [String]) -> Entry? {
    var names = segments
    let namesFolder = names.last == ""
    if namesFolder { names.removeLast() }
    guard names.allSatisfy(Self.isVisible) else { return nil }
    if namesFolder { names.append("index.html") }
    guard let name = names.last else { return nil }
    let place = open(names)
    guard let place else { return errno == EMFILE || errno == ENFILE ? .exhausted : nil }
    defer { close(place) }
    var status = stat()
    guard fstat(place, &status) == 0 else { return nil }
    switch status.st_mode & S_IFMT {
    case S_IFDIR:
      guard !namesFolder, case .file(let index)? = entry(names + [""]) else { return nil }
      close(index.descriptor)
      return .folder
    case S_IFREG:
      if status.st_nlink > 1, status.st_uid != owner { return .foreignLink }
      let descriptor = Glibc.open("/proc/self/fd/\(place)", O_RDONLY | O_CLOEXEC | O_NOCTTY)
      guard descriptor >= 0 else { return errno == EMFILE || errno == ENFILE ? .exhausted : nil }
      let time = status.st_mtim
      let tag = [Int(bitPattern: UInt(status.st_ino)), Int(status.st_size), time.tv_sec, time.tv_nsec]
        .map { String($0, radix: 36) }.joined(separator: "-")
      return .file(File(name: name, count: Int(status.st_size), tag: tag, descriptor: descriptor))
    default:
      return nil
    }
  }

  /// Returns a descriptor that only identifies the place that a path leads to, or nil if that is not a visible place of
  /// the folder.
  private func open(_ names: [String]) -> Int32? {
    let place = Glibc.open(([root] + names).joined(separator: "/"), keyway_open_path_only | O_CLOEXEC)
    guard place >= 0 else { return nil }
    if isInside(place) { return place }
    close(place)
    errno = ENOENT
    return nil
  }

  private func isInside(_ place: Int32) -> Bool {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = buffer.withUnsafeMutableBytes { bytes in
      bytes.withMemoryRebound(to: CChar.self) { text in
        text.baseAddress.map { readlink("/proc/self/fd/\(place)", $0, text.count) } ?? -1
      }
    }
    guard count > 0, count < buffer.count else { return false }
    let path = String(decoding: buffer.prefix(count), as: UTF8.self)
    if path == root { return true }
    let prefix = root == "/" ? root : root + "/"
    guard path.utf8.starts(with: prefix.utf8) else { return false }
    return path.utf8.dropFirst(prefix.utf8.count).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .allSatisfy { $0.first != UInt8(ascii: ".") }
  }

  /// Returns true if a decoded segment can be a name in the folder: names that begin with a dot cannot, `..` least of
  /// all.
  private static func isVisible(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.first != UInt8(ascii: ".")
      && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
  }
}

import Foundation
import Glibc

extension SystemFile {
  /// How many bytes a file has; 0 where there is none.
  static func size(of path: String) -> Int {
    var status = stat()
    return lstat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Gives a file or directory another name where there is one of it; says whether there was.
  static func renameIfThere(_ old: String, to new: String) throws(JournalError) -> Bool {
    guard exists(old) else { return false }
    try rename(old, to: new)
    return true
  }

  /// Takes a directory away with all that is in it; one that is not there is none already.
  static func removeDirectory(_ path: String) throws(JournalError) {
    guard exists(path) else { return }
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      throw .refused("\(path): cannot be removed: \(error.systemReason)")
    }
  }

  /// A time as it stands in the names of files that were moved aside: `20261121T134500Z`. Takes milliseconds since
  /// 1970.
  static func timeName(_ milliseconds: Int64) -> String {
    var seconds = time_t(milliseconds / 1000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    func digits(_ number: Int32, _ count: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    return digits(parts.tm_year + 1900, 4) + digits(parts.tm_mon + 1, 2) + digits(parts.tm_mday, 2) + "T"
      + digits(parts.tm_hour, 2) + digits(parts.tm_min, 2) + digits(parts.tm_sec, 2) + "Z"
  }

  /// A name that no file has yet: this one, or this one with `-2` and so on behind it.
  static func unusedName(_ path: String) -> String {
    guard exists(path) else { return path }
    var number = 2
    while exists("\(path)-\(number)") { number += 1 }
    return "\(path)-\(number)"
  }
}

extension Error {
  /// The reason in the system's words (`Permission denied`), where the description of an error of Foundation has only a
  /// domain and a number.
  package var systemReason: String {
    if let error = self as? POSIXError { return String(cString: strerror(error.code.rawValue)) }
    let error = self as NSError
    if error.domain == NSPOSIXErrorDomain { return String(cString: strerror(Int32(clamping: error.code))) }
    if let cause = error.userInfo[NSUnderlyingErrorKey] as? any Error { return cause.systemReason }
    return error.localizedDescription
  }
}

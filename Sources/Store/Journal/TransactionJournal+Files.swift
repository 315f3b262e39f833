import Glibc

extension TransactionJournal {
  /// What the files of the directory take, in bytes; 0 where it is in none.
  package var fileBytes: Int {
    guard let directory, let folder = opendir(directory) else { return 0 }
    defer { closedir(folder) }
    var bytes = 0
    while let entry = readdir(folder) {
      var status = stat()
      let isFile = withUnsafePointer(to: &entry.pointee.d_name) { name in
        name.withMemoryRebound(to: CChar.self, capacity: 256) { fstatat(dirfd(folder), $0, &status, 0) == 0 }
      }
      // A file may go while the others are looked at.
      if isFile, status.st_mode & S_IFMT == S_IFREG { bytes += Int(status.st_size) }
    }
    return bytes
  }
}

import CLinux
import Glibc

/// Which file it is, whatever its name: another of the same name is another.
struct FileIdentity: Hashable, Sendable {
  private let device: UInt64
  private let inode: UInt64

  /// The file or directory of a name; nil where there is none. Leaves its times alone: a look at those of a log that is
  /// written in place costs each sync a second write, of the times.
  init?(path: String) { self.init(AT_FDCWD, path) }

  /// An open file.
  init?(_ file: SystemFile) { self.init(file.descriptor, "") }

  private init?(_ descriptor: CInt, _ path: String) {
    var (device, inode): (UInt64, UInt64) = (0, 0)
    guard keyway_identify_file(descriptor, path, &device, &inode) else { return nil }
    (self.device, self.inode) = (device, inode)
  }
}

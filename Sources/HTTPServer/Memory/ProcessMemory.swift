import Glibc

/// How much memory this process takes, in bytes.
struct ProcessMemory: Equatable {
  /// What is in physical memory.
  var residentBytes: Int
  /// Its address space, which `ulimit -v` bounds.
  var addressSpaceBytes: Int

  init(residentBytes: Int, addressSpaceBytes: Int = 0) {
    self.residentBytes = residentBytes
    self.addressSpaceBytes = addressSpaceBytes
  }

  /// What the kernel says now; nil where it does not (no `/proc`, no descriptor left).
  static var current: ProcessMemory? {
    let descriptor = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: 256, alignment: 1) { buffer in
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      guard count > 0 else { return nil }
      let pages = String(decoding: buffer[..<count], as: UTF8.self).split(separator: " ").prefix(2).compactMap {
        Int($0)
      }
      guard pages.count == 2 else { return nil }
      let pageBytes = max(1, sysconf(Int32(_SC_PAGESIZE)))
      return ProcessMemory(residentBytes: pages[1] * pageBytes, addressSpaceBytes: pages[0] * pageBytes)
    }
  }
}

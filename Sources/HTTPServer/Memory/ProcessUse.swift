import Glibc

/// What the process takes of the machine.
package struct ProcessUse: Sendable {
  /// Bytes in physical memory; nil where the kernel does not say.
  package let residentBytes: Int?
  /// Bytes of address space; nil where the kernel does not say.
  package let addressSpaceBytes: Int?
  /// Open descriptors; nil where the kernel does not say.
  package let openDescriptors: Int?
  /// How many descriptors may be open.
  package let descriptorLimit: Int

  /// What it takes now.
  package static var current: ProcessUse {
    let memory = ProcessMemory.current
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    return ProcessUse(
      residentBytes: memory?.residentBytes, addressSpaceBytes: memory?.addressSpaceBytes,
      openDescriptors: countDescriptors(), descriptorLimit: Int(clamping: limit.rlim_cur))
  }

  private static func countDescriptors() -> Int? {
    guard let folder = opendir("/proc/self/fd") else { return nil }
    defer { closedir(folder) }
    var count = 0
    while let entry = readdir(folder) {
      // All but `.` and `..` are numbers.
      if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    // One of them is the folder itself.
    return count - 1
  }
}

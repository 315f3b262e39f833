import Glibc

/// The memory that the machine gives this process, according to Linux.
struct MachineMemory: Equatable {
  /// Physical memory, in bytes.
  var physicalBytes: Int
  /// The lowest limit of the process's control groups, in bytes; nil if there is none.
  var groupBytes: Int?
  /// The limit of the address space, `RLIMIT_AS` (`ulimit -v`), in bytes; nil if there is none.
  var addressSpaceBytes: Int?

  /// The maximum number of bytes that the process can have.
  var bytes: Int { min(physicalBytes, groupBytes ?? .max, addressSpaceBytes ?? .max) }

  /// The values for this machine and this process.
  static var current: MachineMemory {
    MachineMemory(
      physicalBytes: max(1, sysconf(Int32(_SC_PHYS_PAGES))) * max(1, sysconf(Int32(_SC_PAGESIZE))),
      groupBytes: groupBytes(memberships: text(of: "/proc/self/cgroup") ?? "", read: text),
      addressSpaceBytes: addressSpaceLimit)
  }

  /// Returns the lowest limit of the control groups that `memberships`, the text of `/proc/self/cgroup`, names, and of
  /// the groups around them. `read` returns the text of a file. Inside a container, the container's own group is the
  /// root of the mounted hierarchy, whatever the path says, so the root is checked as well.
  static func groupBytes(memberships: String, read: (String) -> String?) -> Int? {
    var limit: Int?
    for line in memberships.split(separator: "\n") {
      // `hierarchy:controllers:path`; version 2 has hierarchy 0 and no controllers.
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      let (root, file): (String, String)
      if parts[0] == "0", parts[1].isEmpty {
        (root, file) = ("/sys/fs/cgroup", "memory.max")
      } else if parts[1].split(separator: ",").contains("memory") {
        (root, file) = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
      } else {
        continue
      }
      var names = parts[2].split(separator: "/")
      while true {
        let folder = names.isEmpty ? root : root + "/" + names.joined(separator: "/")
        // Without a limit the text is `max`, or in version 1 a number near the largest.
        if let bytes = read(folder + "/" + file).flatMap({ Int($0.prefix { $0.isNumber }) }), bytes < 1 << 60 {
          limit = min(limit ?? .max, bytes)
        }
        if names.popLast() == nil { break }
      }
    }
    return limit
  }

  private static var addressSpaceLimit: Int? {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0, limit.rlim_cur < 1 << 60 else { return nil }
    return Int(limit.rlim_cur)
  }

  /// Returns the beginning of a file of the kernel; nil if it cannot be read.
  private static func text(of path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
    }
  }
}

/// The memory that this process uses, in bytes.
struct ProcessMemory: Equatable {
  /// The size of the resident set.
  var residentBytes: Int
  /// The size of the address space, which `ulimit -v` bounds.
  var addressSpaceBytes = 0

  /// The current values according to the kernel; nil if they are unavailable (no `/proc`, no descriptor left).
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

/// The resources of the machine that the process uses.
package struct ProcessUse: Sendable {
  /// The bytes in physical memory; nil if unavailable.
  package let residentBytes: Int?
  /// The bytes of address space; nil if unavailable.
  package let addressSpaceBytes: Int?
  /// The number of open descriptors; nil if unavailable.
  package let openDescriptors: Int?
  /// The maximum number of open descriptors.
  package let descriptorLimit: Int

  /// The current use.
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
      // All entries except `.` and `..` are numbers.
      if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
    }
    // One of them is the descriptor of the folder itself.
    return count - 1
  }
}

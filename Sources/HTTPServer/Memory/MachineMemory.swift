import Glibc

/// What the machine gives this process, from the places where Linux says so.
struct MachineMemory: Equatable {
  /// Physical memory, in bytes.
  var physicalBytes: Int
  /// The lowest limit of the control groups that the process is in; nil where there is none.
  var groupBytes: Int?
  /// The limit of the address space, `RLIMIT_AS` (`ulimit -v`); nil where there is none.
  var addressSpaceBytes: Int?

  /// What the process can have at most.
  var bytes: Int { min(physicalBytes, groupBytes ?? .max, addressSpaceBytes ?? .max) }

  /// This machine, and this process on it.
  static var current: MachineMemory {
    MachineMemory(
      physicalBytes: max(1, sysconf(Int32(_SC_PHYS_PAGES))) * max(1, sysconf(Int32(_SC_PAGESIZE))),
      groupBytes: groupBytes(memberships: text(of: "/proc/self/cgroup") ?? "", read: text),
      addressSpaceBytes: addressSpaceLimit)
  }

  /// The lowest limit of the control groups that `memberships`, the text of `/proc/self/cgroup`, names, and of those
  /// around them. `read` gives the text of a file. Inside a container its own group is the root of what is mounted,
  /// whatever the path says, so that is looked at as well.
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

  /// The beginning of a file of the kernel, nil where it cannot be read.
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

/// How much memory this process takes, in bytes.
struct ProcessMemory: Equatable {
  /// What is in physical memory.
  var residentBytes: Int
  /// Its address space, which `ulimit -v` bounds.
  var addressSpaceBytes = 0

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

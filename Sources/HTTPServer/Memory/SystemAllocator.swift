import CMicrohttpd
import Support

/// The C library's memory allocator, which Swift's objects come from.
package enum SystemAllocator {
  /// Blocks of this many bytes and more, such as large bodies, answers and arrays, are mapped one by one, so that the
  /// system has them back as soon as they are freed.
  private static let mappedBytes: Int32 = 512 << 10
  /// How many bytes may be free at the end of a heap before they are given back.
  private static let spareBytes: Int32 = 16 << 20

  /// Makes the allocator give memory back after a flood. Left alone, it raises both numbers with what is freed, up to
  /// where tens of megabytes of each thread stay, and each of eight heaps a core reserves 64 MiB of address space. Call
  /// once, before much is allocated.
  package static func configure() {
    mallopt(M_MMAP_THRESHOLD, mappedBytes)
    mallopt(M_TRIM_THRESHOLD, spareBytes)
    mallopt(M_ARENA_MAX, Int32(clamping: max(4, SystemThread.coreCount)))
  }

  /// Gives all free memory back to the system. Takes as long as looking through it does.
  package static func giveBack() {
    malloc_trim(0)
  }
}

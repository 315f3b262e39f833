import CMicrohttpd

/// Gives memory back to the system after many streams have gone: the C library keeps what is freed.
struct MemoryTrim {
  private var peak = 0
  private var sweepsLeft: Int?

  /// Call once a second with the number of open streams.
  mutating func sweep(streams: Int) {
    if isDue(streams: streams) { malloc_trim(0) }
  }

  /// Whether now is the time: two sweeps after a mass departure, when every thread has freed its own.
  mutating func isDue(streams: Int) -> Bool {
    peak = max(peak, streams)
    if streams < peak / 2, peak - streams > 500 {
      peak = streams
      sweepsLeft = 2
      return false
    }
    guard let left = sweepsLeft else { return false }
    sweepsLeft = left > 1 ? left - 1 : nil
    return left == 1
  }
}

import Glibc
import Histogram
import TestKit

/// How long a disk takes to keep a block: what bounds everything that waits for it.
struct DiskProbe: Hashable, Sendable {
  /// A block at the end of a file that grows, and its `fdatasync`.
  var append = Latency()
  /// A block in place of another that was written before, and its `fdatasync`.
  var overwrite = Latency()

  /// What is written at once.
  static let blockBytes = 4096
  /// How far a file grows.
  static let maximumBlocks = 8192

  /// The figures of nothing.
  init() {}

  /// Measures with a file in `directory` for so long each, and removes it.
  init(directory: String, seconds: Double) throws {
    let path = directory + "/disk-probe"
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    guard descriptor >= 0 else { throw LoopbackError(call: "open \(path)") }
    defer {
      close(descriptor)
      unlink(path)
    }
    let blocks: Int
    (append, blocks) = try Self.measure(descriptor, seconds: seconds, blocks: Self.maximumBlocks)
    (overwrite, _) = try Self.measure(descriptor, seconds: seconds, blocks: blocks)
  }

  /// Writes one block after the other, from the first again behind the last; gives how many of them were written. Where
  /// the time is up before the last, that is fewer.
  private static func measure(
    _ descriptor: Int32, seconds: Double, blocks: Int
  ) throws -> (latency: Latency, blocks: Int) {
    let block = [UInt8](repeating: UInt8(ascii: "x"), count: blockBytes)
    var histogram = Latency.histogram()
    let start = MonotonicClock.now()
    let end = start + UInt64(seconds * 1e9)
    var (now, count) = (start, 0)
    while now < end, count < maximumBlocks {
      let written = pwrite(descriptor, block, block.count, off_t(count % max(blocks, 1) * blockBytes))
      guard written == block.count, fdatasync(descriptor) == 0 else { throw LoopbackError(call: "write a block") }
      let done = MonotonicClock.now()
      histogram.record((done - now) / 1000)
      (now, count) = (done, count + 1)
    }
    return (Latency(histogram), min(count, blocks))
  }
}

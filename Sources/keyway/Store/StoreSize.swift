internal import Foundation

/// How much room a store takes.
enum StoreSize {
  /// The bytes of all files of a store's directory that the store uses, without what was moved aside.
  static func bytes(of directory: String) -> Int {
    let snapshots = directory + "/snapshots"
    let names = (try? FileManager.default.contentsOfDirectory(atPath: snapshots)) ?? []
    let paths =
      ["journal.sqlite", "journal.sqlite-wal", "acknowledged"].map { "\(directory)/\($0)" }
      + names.filter { $0.hasSuffix(".snapshot") }.map { "\(snapshots)/\($0)" }
    return paths.reduce(0) { sum, path in
      sum + ((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0)
    }
  }
}

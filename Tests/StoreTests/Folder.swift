import Foundation

/// A place for a store, which is taken away when nothing refers to it any more.
final class Folder {
  let path = FileManager.default.temporaryDirectory.appending(path: "keyway-store-\(UUID().uuidString)").path

  deinit { try? FileManager.default.removeItem(atPath: path) }
}

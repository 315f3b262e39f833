/// What stands in a branch: a bucket, or a branch of the next level. The branch counts as one owner of it.
///
/// Unmanaged, so that a lookup counts no references on its way down: each would be written by every thread that reads.
/// It may be read as long as the branch above is held; `RecordBranch` alone retains and releases.
enum RecordNode {
  case bucket(Unmanaged<RecordBucket>)
  case branch(Unmanaged<RecordBranch>)

  /// A node that a branch is to own.
  static func owning(_ bucket: RecordBucket) -> RecordNode { .bucket(.passRetained(bucket)) }

  /// A node that a branch is to own.
  static func owning(_ branch: RecordBranch) -> RecordNode { .branch(.passRetained(branch)) }

  /// Adds an owner.
  func retain() {
    switch self {
    case .bucket(let bucket): _ = bucket.retain()
    case .branch(let branch): _ = branch.retain()
    }
  }

  /// Takes an owner away.
  func release() {
    switch self {
    case .bucket(let bucket): bucket.release()
    case .branch(let branch): branch.release()
    }
  }
}

/// Records at the end of a path through a `RecordTree`, in one allocation: a tag of 16 bits of the hash for each,
/// followed by a word for each.
///
/// Tags are compared before references, and a bucket is divided by tags: neither reads a record that it does not need,
/// which would seldom be in a cache. Tags come first because there they are next to the header, mostly in the same
/// cache line.
///
/// A bucket with several owners is never mutated: mutating functions take it `inout`, and copy it first if it is
/// shared.
final class RecordBucket: ManagedBuffer<RecordBucketHeader, ObjectRecord> {
  /// The maximum number of records in a bucket that can be divided. With a higher limit, nodes take a smaller part of
  /// the memory, and the change of a shared bucket counts more references.
  static let limit = 16
  /// Two halves with at most this many records together are joined again: less than `limit`, so that a bucket at the
  /// limit does not alternate.
  static let mergeLimit = 8

  private typealias Header = UnsafeMutablePointer<RecordBucketHeader>
  private typealias Records = UnsafeMutablePointer<ObjectRecord>
  private typealias Tags = UnsafeMutablePointer<UInt16>

  /// Creates an empty bucket.
  static func make(capacity: Int) -> RecordBucket {
    let buffer = create(minimumCapacity: tagWords(of: capacity) + capacity) { _ in
      RecordBucketHeader(count: 0, capacity: Int32(capacity))
    }
    return unsafeDowncast(buffer, to: RecordBucket.self)
  }

  /// Creates a bucket of records below a branch of a level.
  static func make(of entries: RecordBranch.Entries, level: Int) -> RecordBucket {
    let bucket = make(capacity: room(for: entries.count))
    for entry in entries { bucket.add(entry.record, entry.hash.tag(level: level)) }
    return bucket
  }

  deinit {
    _ = withMemory { header, records, _ in records.deinitialize(count: Int(header.pointee.count)) }
  }

  /// Returns the number of words for the tags of this many records: four tags are as long as a record.
  private static func tagWords(of capacity: Int) -> Int { (capacity + 3) / 4 }

  private func withMemory<Result>(_ body: (Header, Records, Tags) -> Result) -> Result {
    withUnsafeMutablePointers { header, start in
      let tags = UnsafeMutableRawPointer(start).assumingMemoryBound(to: UInt16.self)
      return body(header, start + Self.tagWords(of: Int(header.pointee.capacity)), tags)
    }
  }

  // MARK: Reading

  /// The number of records.
  var count: Int { withMemory { header, _, _ in Int(header.pointee.count) } }

  /// The number of records for which there is room.
  var room: Int { withMemory { header, _, _ in Int(header.pointee.capacity) } }

  /// The record at a position.
  subscript(position: Int) -> ObjectRecord {
    withMemory { header, records, _ in
      precondition(position >= 0 && position < header.pointee.count)
      return records[position]
    }
  }

  /// Returns the position of the record of a reference, or nil if there is none.
  func position(of reference: Reference, tag: UInt16) -> Int? {
    withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      for position in 0..<count where tags[position] == tag && records[position].isNamed(reference) {
        return position
      }
      return nil
    }
  }

  /// Returns the record of a reference, or nil if there is none.
  func record(_ reference: Reference, tag: UInt16) -> ObjectRecord? {
    withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      for position in 0..<count where tags[position] == tag && records[position].isNamed(reference) {
        return records[position]
      }
      return nil
    }
  }

  /// Returns the tag of the record at a position.
  func tag(at position: Int) -> UInt16 { withMemory { _, _, tags in tags[position] } }

  // MARK: Changing

  /// Replaces the record at a position. Returns the previous one.
  static func replace(at position: Int, with record: ObjectRecord, in bucket: inout RecordBucket) -> ObjectRecord {
    makeUnique(&bucket)
    return bucket.withMemory { _, records, _ in
      let old = records[position]
      records[position] = record
      return old
    }
  }

  /// Changes the record at a position.
  static func change(at position: Int, in bucket: inout RecordBucket, _ change: (inout ObjectRecord) -> Void) {
    makeUnique(&bucket)
    bucket.withMemory { _, records, _ in change(&records[position]) }
  }

  /// Adds a record.
  static func append(_ record: ObjectRecord, tag: UInt16, to bucket: inout RecordBucket) {
    let count = bucket.count
    if !isKnownUniquelyReferenced(&bucket) {
      bucket = bucket.copy(capacity: room(for: count + 1))
    } else if count == bucket.room {
      bucket = bucket.emptied(into: make(capacity: room(for: count + 1)))
    }
    bucket.add(record, tag)
  }

  /// Removes the record at a position, where the last one takes its place. Returns the removed record.
  static func remove(at position: Int, from bucket: inout RecordBucket) -> ObjectRecord {
    makeUnique(&bucket)
    let record = bucket.withMemory { header, records, tags in
      header.pointee.count -= 1
      let last = Int(header.pointee.count)
      let record = (records + position).move()
      if position < last {
        (records + position).moveInitialize(from: records + last, count: 1)
        tags[position] = tags[last]
      }
      return record
    }
    let room = room(for: bucket.count)
    if room + 8 <= bucket.room { bucket = bucket.emptied(into: make(capacity: room)) }
    return record
  }

  /// Divides the records into two buckets: those whose slot is less than `middle`, and the others.
  static func divide(_ bucket: inout RecordBucket, at middle: Int) -> (low: RecordBucket, high: RecordBucket) {
    let isAlone = isKnownUniquelyReferenced(&bucket)
    return bucket.withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      var highCount = 0
      for position in 0..<count where RecordHash.slot(of: tags[position]) >= middle { highCount += 1 }
      let low = make(capacity: room(for: count - highCount))
      let high = make(capacity: room(for: highCount))
      for position in 0..<count {
        let tag = tags[position]
        let half = RecordHash.slot(of: tag) >= middle ? high : low
        half.add(isAlone ? (records + position).move() : records[position], tag)
      }
      if isAlone { header.pointee.count = 0 }
      return (low, high)
    }
  }

  /// Returns the same records with other tags.
  func retagged(_ tag: (ObjectRecord) -> UInt16) -> RecordBucket {
    let copy = copy(capacity: Self.room(for: count))
    copy.withMemory { header, records, tags in
      for position in 0..<Int(header.pointee.count) { tags[position] = tag(records[position]) }
    }
    return copy
  }

  /// Returns a bucket with the records of both.
  func joined(with other: RecordBucket) -> RecordBucket {
    let bucket = copy(capacity: Self.room(for: count + other.count))
    for position in 0..<other.count { bucket.add(other[position], other.tag(at: position)) }
    return bucket
  }

  /// Returns the capacity for this many records, with up to three more that the allocation includes anyway.
  private static func room(for count: Int) -> Int { max(4, (count + 3) & ~3) }

  private static func makeUnique(_ bucket: inout RecordBucket) {
    if !isKnownUniquelyReferenced(&bucket) { bucket = bucket.copy(capacity: room(for: bucket.count)) }
  }

  private func copy(capacity: Int) -> RecordBucket {
    let copy = Self.make(capacity: capacity)
    withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      copy.withMemory { header, newRecords, newTags in
        precondition(count <= header.pointee.capacity)
        newRecords.initialize(from: records, count: count)
        newTags.initialize(from: tags, count: count)
        header.pointee.count = Int32(count)
      }
    }
    return copy
  }

  /// Moves all records to an empty bucket, and returns that. Requires a single owner.
  private func emptied(into other: RecordBucket) -> RecordBucket {
    withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      other.withMemory { header, newRecords, newTags in
        precondition(count <= header.pointee.capacity)
        newRecords.moveInitialize(from: records, count: count)
        newTags.initialize(from: tags, count: count)
        header.pointee.count = Int32(count)
      }
      header.pointee.count = 0
    }
    return other
  }

  private func add(_ record: ObjectRecord, _ tag: UInt16) {
    withMemory { header, records, tags in
      let count = Int(header.pointee.count)
      precondition(count < header.pointee.capacity)
      (records + count).initialize(to: record)
      (tags + count).initialize(to: tag)
      header.pointee.count += 1
    }
  }
}

/// The number of records in a `RecordBucket`, and its capacity.
struct RecordBucketHeader {
  var count: Int32
  let capacity: Int32
}

package import KeyValueModel

/// Up to which revision a journal may forget its records, for the sake of others that read them: asked with the
/// revision up to which its own store does not need them, and the bytes that the store has written since its start.
/// Called on a thread of the store's own; must not call the store.
package typealias JournalNeed = @Sendable (_ oldest: Revision, _ writtenBytes: Int) -> Revision

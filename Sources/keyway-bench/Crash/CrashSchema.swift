/// The schema of a crash test: each entity makes one kind of mistake visible.
enum CrashSchema {
  /// Counters go up by one, so a value that was skipped or came twice shows. Of two halves the sum stays the same, so
  /// half a transaction shows. Items come and go, some under names that the server makes. Lists are ordered.
  static let yaml = """
    entities:
      Counter:
        keys:
          value: { type: integer, default: 0 }
          group: { toOne: Group, inverse: counters }
        display: [value]
      Group:
        keys:
          counters: { toMany: Counter, inverse: group }
          total: { type: integer, computed: counters.@sum.value }
        display: [total]
      Half:
        keys:
          value: { type: integer, default: 0 }
          sequence: { type: integer, default: 0 }
        display: [value, sequence]
      Item:
        keys:
          number: { type: integer, indexed: true }
          writer: { type: integer, indexed: true }
      List:
        keys:
          name: { type: string }
          entries: { toMany: Entry, ordered: true, inverse: list }
      Entry:
        keys:
          number: { type: integer }
          list: { toOne: List, inverse: entries }

    """
}

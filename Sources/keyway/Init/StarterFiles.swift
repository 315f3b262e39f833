/// What `keyway init` writes.
enum StarterFiles {
  /// The files by their names, in the order in which they are written.
  static let all = [(name: "schema.yaml", text: schema), (name: "keyway.yaml", text: configuration)]

  private static let schema = """
    # The objects of this server. `keyway check schema.yaml` says what is wrong with it, line by line; while the server
    # runs, http://127.0.0.1:8080/ shows its objects.
    entities:
      List:
        keys:
          name: { type: string, optional: false, maxLength: 80 }
          # Both sides of a relationship stay in step. The items go with their list.
          items: { toMany: Item, ordered: true, inverse: list, delete: cascade }
          # Worked out, and told to those who watch, when an item comes, goes or is done.
          open: { type: integer, computed: "size(items.filter(i, !i.done))" }
        display: [name, open]

      Item:
        keys:
          text: { type: string, optional: false, maxLength: 200 }
          done: { type: boolean, default: false, optional: false }
          due: { type: date }
          list: { toOne: List, inverse: items }

    """

  private static let configuration = """
    # What differs from the defaults. `keyway serve` reads this file where it is started; `--print-config` shows all
    # settings, and where each comes from. Relative paths start from there, too.
    schema: schema.yaml
    store: keyway-data

    # The address. Beyond this machine the server listens with keys of tokens only (access.keys).
    host: 127.0.0.1
    port: 8080

    # A folder of your own pages, beside /v1.
    # public: public

    """
}

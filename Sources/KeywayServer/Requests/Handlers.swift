/// Everything that the route table calls.
struct Handlers: Sendable {
  let objects: ObjectHandlers
  let keyPaths: KeyPathHandlers
  let fetches: FetchHandler
  let transactions: TransactionHandler
  let objectStreams: ObjectStreamHandlers
  let queryStreams: QueryStreamHandler
  let cells: CellHandlers
  let streams: StreamHandlers
  let journal: JournalHandler
  let schema: SchemaHandlers
  let description: DescriptionHandler
  let operations: OperationsHandlers
  let metrics: MetricsHandler
  let idempotency: IdempotentHandlers
  let sessions: SessionHandlers
  let revocations: RevocationHandlers
  let files: FileHandlers
  let nodes: NodeHandlers
}

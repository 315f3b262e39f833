/// The metrics of `/metrics`, by name. This is the one table from which the page, its help and the documentation are
/// derived.
package enum Metric: String, CaseIterable, Sendable {
  case buildInfo = "keyway_build_info"

  case requests = "keyway_requests_total"
  case requestDurations = "keyway_request_duration_seconds"
  case connections = "keyway_connections"
  case requestsBehind = "keyway_requests_behind"
  case readingsRunning = "keyway_readings_running"
  case readingsWaiting = "keyway_readings_waiting"
  case readingsAbandoned = "keyway_readings_abandoned_total"
  case readingsRefused = "keyway_readings_refused_total"
  case idempotencyKeys = "keyway_idempotency_keys"
  case idempotencyBytes = "keyway_idempotency_bytes"
  case idempotencyReplays = "keyway_idempotency_replays_total"

  case revision = "keyway_revision"
  case oldestRevision = "keyway_oldest_revision"
  case objects = "keyway_objects"
  case objectMemory = "keyway_objects_memory_bytes"
  case objectMemoryLimit = "keyway_objects_memory_limit_bytes"
  case objectRefusals = "keyway_objects_refusals_total"
  case leases = "keyway_leases"
  case storeBytes = "keyway_store_bytes"
  case queuedWrites = "keyway_queued_writes"
  case commits = "keyway_commits_total"
  case commitDurations = "keyway_commit_duration_seconds"
  case syncDurations = "keyway_sync_duration_seconds"
  case expressionFailures = "keyway_expression_failures_total"

  case followers = "keyway_nodes_followers"
  case revisionsBehind = "keyway_nodes_behind"
  case silenceSeconds = "keyway_nodes_silence_seconds"
  case forwardedWrites = "keyway_nodes_forwarding"
  case relayedStreams = "keyway_nodes_streams"
  case peerBehind = "keyway_peer_behind_revisions"
  case peerSilence = "keyway_peer_silence_seconds"
  case peerPen = "keyway_peer_pen"
  case overtakenBatches = "keyway_peer_overtaken_batches_total"

  case streams = "keyway_streams"
  case cutStreams = "keyway_cut_streams"
  case openingStreams = "keyway_opening_streams"
  case cells = "keyway_cells"
  case queries = "keyway_queries"
  case observations = "keyway_observations"
  case notifications = "keyway_notifications_total"
  case pendingBytes = "keyway_pending_bytes"
  case laggingStreams = "keyway_lagging_streams"
  case lags = "keyway_lags_total"
  case lagDurations = "keyway_lag_duration_seconds"
  case disconnects = "keyway_disconnects_total"

  case memory = "keyway_memory_bytes"
  case memoryLimit = "keyway_memory_limit_bytes"
  case memoryRefusals = "keyway_memory_refusals_total"
  case residentMemory = "process_resident_memory_bytes"
  case virtualMemory = "process_virtual_memory_bytes"
  case openDescriptors = "process_open_fds"
  case mostDescriptors = "process_max_fds"

  case conditions = "keyway_conditions_total"
  case activeConditions = "keyway_condition_active"
  case droppedLogLines = "keyway_log_lines_dropped_total"

  /// The type of a metric in Prometheus.
  package enum Kind: String, Sendable {
    case counter, gauge, histogram
  }

  /// The type in Prometheus, derived from the name.
  package var kind: Kind {
    if rawValue.hasSuffix("_total") { return .counter }
    return rawValue.hasSuffix("_duration_seconds") ? .histogram : .gauge
  }

  /// The names of its labels.
  package var labels: [String] {
    switch self {
    case .buildInfo: ["version"]
    case .requests: ["method", "route", "status"]
    case .requestDurations: ["route", "status"]
    case .openingStreams: ["queue"]
    case .expressionFailures: ["entity", "key"]
    case .disconnects, .memoryRefusals, .objectRefusals: ["reason"]
    case .memory: ["use"]
    case .conditions, .activeConditions: ["condition"]
    default: []
    }
  }

  /// The help text, as a sentence.
  package var help: String {
    switch self {
    case .buildInfo: "The version of the program; always 1."
    case .requests: "Requests that were answered; of streams, those that were opened."
    case .requestDurations: "From the whole request to its answer, or to the opening of its stream."
    case .connections: "Connections that are open, those of streams included."
    case .requestsBehind: "Requests that wait for a revision that their Keyway-Cursor names."
    case .readingsRunning: "Long requests that are being worked on."
    case .readingsWaiting: "Long requests that wait for their turn."
    case .readingsAbandoned: "Long requests whose clients left."
    case .readingsRefused: "Long requests that were refused because too many waited."
    case .idempotencyKeys: "Idempotency-Keys that are remembered."
    case .idempotencyBytes: "What they and their responses take."
    case .idempotencyReplays: "Responses that were given again."
    case .revision: "The revision of the last commit."
    case .oldestRevision: "The oldest revision that streams can resume from."
    case .objects: "Objects in the store."
    case .objectMemory: "The memory that the objects take, with what is kept to find them."
    case .objectMemoryLimit: "The memory that they may take when a write adds to them."
    case .objectRefusals: "Writes that were refused because the objects, or one client's part of them, take so much."
    case .leases: "Objects that end by themselves."
    case .storeBytes: "What the files of the store take; 0 in memory."
    case .queuedWrites: "Writes that wait for the writer."
    case .commits: "Commits since the store was made."
    case .commitDurations: "From a write's arrival at the writer to its publication, its sync included."
    case .syncDurations: "What the journal took to write a batch of commits down, its sync included."
    case .expressionFailures: "Evaluations of computed keys that failed."
    case .followers: "Nodes that follow this one."
    case .revisionsBehind: "Revisions that this node knows of and has not."
    case .silenceSeconds: "Since when nothing was heard of the node that this one follows; 0 where it follows none."
    case .relayedStreams: "Streams of other nodes that are sent on."
    case .forwardedWrites: "Requests that were passed on and have no answer yet."
    case .peerBehind: "Revisions in the shared journal that this peer has heard of and has not."
    case .peerSilence: "For how long the database of the shared journal has not answered."
    case .peerPen: "Whether this peer was the last to append to the shared journal."
    case .overtakenBatches: "Batches of writes that were judged again because another peer was first."
    case .streams: "Streams that are open."
    case .cutStreams: "Streams that were cut and are kept for their clients."
    case .openingStreams: "Streams that wait to be opened, or are being opened."
    case .cells: "Cells of streams."
    case .queries: "Live queries of streams."
    case .observations: "Observations of streams."
    case .notifications: "Notifications that were handed to streams."
    case .pendingBytes: "Events that wait for their readers."
    case .laggingStreams: "Streams whose readers are too slow, so that they miss events."
    case .lags: "How often a stream began to lag."
    case .lagDurations: "How long a stream lagged, up to its catch-up or its end."
    case .disconnects: "Streams that ended."
    case .memory: "What clients make the server hold."
    case .memoryLimit: "How much of it there may be."
    case .memoryRefusals: "Requests that were refused because there was too much of it."
    case .residentMemory: "The memory of the process."
    case .virtualMemory: "The address space of the process."
    case .openDescriptors: "Descriptors that are open."
    case .mostDescriptors: "How many descriptors may be open."
    case .conditions: "Occurrences of conditions that an operator should know of."
    case .activeConditions: "Whether the condition lasts."
    case .droppedLogLines: "Lines of the log that were lost because its reader was too slow."
    }
  }
}

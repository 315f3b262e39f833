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
  case passwordHashes = "keyway_password_hashes_total"

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
    case .requests: "Requests answered, and streams opened."
    case .requestDurations: "Time from the complete request to its response, or to the opening of its stream."
    case .connections: "Open connections, including those of streams."
    case .requestsBehind: "Requests waiting for the revision that their Keyway-Cursor names."
    case .readingsRunning: "Long requests in progress."
    case .readingsWaiting: "Long requests waiting for a thread."
    case .readingsAbandoned: "Long requests abandoned because their clients left."
    case .readingsRefused: "Long requests refused because too many were waiting."
    case .idempotencyKeys: "Remembered Idempotency-Keys."
    case .idempotencyBytes: "Memory of the remembered Idempotency-Keys and their responses."
    case .idempotencyReplays: "Stored responses sent again to retries."
    case .passwordHashes: "Passwords hashed, to keep or to check them."
    case .revision: "The revision of the last commit."
    case .oldestRevision: "The oldest revision that streams can resume from."
    case .objects: "Objects in the store."
    case .objectMemory: "Memory of the objects, including their indexes."
    case .objectMemoryLimit: "Limit of the memory of the objects for writes that add to it."
    case .objectRefusals: "Writes refused because the objects, or one client's part of them, use too much memory."
    case .leases: "Objects with a lease, which end by themselves."
    case .storeBytes: "Size of the store's files; 0 for a store in memory."
    case .queuedWrites: "Writes waiting for the writer."
    case .commits: "Commits since the store was created."
    case .commitDurations: "Time from a write's arrival at the writer to its publication, including its sync."
    case .syncDurations: "Time to write a batch of commits to the journal, including its sync."
    case .expressionFailures: "Evaluations of computed keys that failed."
    case .followers: "Nodes that follow this one."
    case .revisionsBehind: "Known revisions that this node does not have yet."
    case .silenceSeconds: "Seconds since the last contact with the leader; 0 for a node without one."
    case .relayedStreams: "Streams of other nodes that this node relays."
    case .forwardedWrites: "Forwarded requests that have no response yet."
    case .peerBehind: "Known revisions of the shared journal that this peer does not have yet."
    case .peerSilence: "Seconds for which the database of the shared journal has not responded."
    case .peerPen: "1 if this peer was the last to append to the shared journal, else 0."
    case .overtakenBatches: "Batches of writes evaluated again because another peer appended first."
    case .streams: "Open streams."
    case .cutStreams: "Cut streams that their clients may resume."
    case .openingStreams: "Streams waiting to be opened, or being opened."
    case .cells: "Cells of streams."
    case .queries: "Live queries of streams."
    case .observations: "Observations of streams."
    case .notifications: "Notifications delivered to streams."
    case .pendingBytes: "Bytes of events waiting for their readers."
    case .laggingStreams: "Streams that miss events because their readers are too slow."
    case .lags: "Number of times that a stream began to lag."
    case .lagDurations: "Time for which a stream lagged, until its catch-up or its end."
    case .disconnects: "Streams that ended."
    case .memory: "Memory held for clients."
    case .memoryLimit: "Limit of the memory held for clients."
    case .memoryRefusals: "Requests refused because the limit of the memory held for clients was reached."
    case .residentMemory: "The memory of the process."
    case .virtualMemory: "The address space of the process."
    case .openDescriptors: "Open file descriptors."
    case .mostDescriptors: "Maximum number of open file descriptors."
    case .conditions: "Occurrences of conditions that need an operator's attention."
    case .activeConditions: "1 while the condition lasts, else 0."
    case .droppedLogLines: "Log lines lost because the reader of the log was too slow."
    }
  }
}

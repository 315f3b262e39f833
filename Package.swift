// swift-tools-version: 6.2
import PackageDescription

/// What every target is compiled with: imports that do not leak, existentials that say `any`, and no warning left.
let strict: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
  .treatAllWarnings(as: .error),
]

let package = Package(
  name: "keyway",
  products: [
    .library(name: "KeyValueModel", targets: ["KeyValueModel"]),
    .library(name: "KeyValueObserving", targets: ["KeyValueObserving"]),
    .executable(name: "keyway", targets: ["keyway"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    .package(url: "https://github.com/attaswift/BigInt", from: "6.0.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
  ],
  targets: [
    // C is imported by these six alone. First libmicrohttpd.
    .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    // Second calls of Linux that Swift's Glibc module lacks: epoll, eventfd, O_PATH, names of threads, the allocator.
    .systemLibrary(name: "CLinux"),
    // Third the call by which libmicrohttpd reads, so that requests are judged before it parses them.
    .target(name: "CSocketCalls"),
    // Fourth libpq, PostgreSQL's client library.
    .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    // Fifth libcurl, an HTTP client with TLS.
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    // Sixth the files for browsers, the example and the description of the API, which C embeds in half a second: as
    // Swift's array literals they take a minute.
    .target(name: "CEmbeddedFiles"),
    // Values behind locks, threads, clocks, turns between clients, digests, and how numbers and times are written.
    .target(
      name: "Support",
      dependencies: [
        "CLinux",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .target(
      name: "CEL",
      dependencies: ["Support", .product(name: "BigInt", package: "BigInt")],
      swiftSettings: strict),
    .target(
      name: "KeyValueModel",
      dependencies: [
        "CEL", "Support",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "HashTreeCollections", package: "swift-collections"),
        .product(name: "OrderedCollections", package: "swift-collections"),
        .product(name: "Yams", package: "Yams"),
      ],
      swiftSettings: strict),
    .target(
      name: "KeyValueObserving",
      dependencies: [
        "KeyValueModel",
        .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    // The single writer, its history and its journal.
    .target(
      name: "Store",
      dependencies: [
        "CLinux", "KeyValueModel", "KeyValueObserving", "Support",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .target(
      name: "HTTPServer",
      dependencies: [
        "CLinux", "CMicrohttpd", "CSocketCalls", "Support",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    // HTTP requests to other servers.
    .target(name: "Outbound", dependencies: ["CCurl", "Support"], swiftSettings: strict),
    .target(
      name: "KeywayBrowser",
      dependencies: ["CEmbeddedFiles", "Support", .product(name: "Crypto", package: "swift-crypto")],
      exclude: ["Resources"], swiftSettings: strict),
    .target(
      name: "KeywayServer",
      dependencies: [
        "CEL", "CEmbeddedFiles", "CLinux", "HTTPServer", "KeyValueModel", "KeyValueObserving", "KeywayBrowser",
        "Store", "Support",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      exclude: ["Description/openapi.yaml"], swiftSettings: strict),
    // All that only several nodes need: a journal that they share, following, forwarding.
    .target(
      name: "Cluster",
      dependencies: [
        "CPostgres", "HTTPServer", "KeyValueModel", "KeywayServer", "Outbound", "Store", "Support",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .target(
      name: "KeywayClient",
      dependencies: ["KeyValueModel", "Support"],
      swiftSettings: strict),
    .target(
      name: "CommandSupport",
      dependencies: [
        "KeyValueModel", "KeywayClient",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "Yams", package: "Yams"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "keyway",
      dependencies: [
        "CEmbeddedFiles", "Cluster", "CommandSupport", "HTTPServer", "KeyValueModel", "KeywayClient", "KeywayServer",
        "Outbound", "Store", "Support",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "Yams", package: "Yams"),
      ],
      swiftSettings: strict),
    // Load generators, hostile neighbours and crash rounds: a program beside the server, which needs none of it.
    .executableTarget(
      name: "keyway-bench",
      dependencies: [
        "Cluster", "CommandSupport", "HTTPServer", "KeyValueModel", "KeyValueObserving", "KeywayClient",
        "KeywayServer", "Store", "Support", "TestKit",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Histogram", package: "hdrhistogram-swift"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    // What the tests and the benchmarks share: processes, servers and clients on the loopback address, journals that
    // fail, seeded randomness.
    .target(
      name: "TestKit",
      dependencies: [
        "CLinux", "KeyValueModel", "Store", "Support",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      path: "Tests/TestKit",
      swiftSettings: strict),
    .testTarget(name: "SupportTests", dependencies: ["Support", "TestKit"], swiftSettings: strict),
    .testTarget(
      name: "CELTests",
      dependencies: ["CEL", "TestKit", .product(name: "BigInt", package: "BigInt")],
      swiftSettings: strict),
    .testTarget(
      name: "KeyValueModelTests",
      dependencies: ["KeyValueModel", "Support", "TestKit"],
      swiftSettings: strict),
    .testTarget(
      name: "KeyValueObservingTests",
      dependencies: [
        "KeyValueModel", "KeyValueObserving", "TestKit",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "StoreTests",
      dependencies: [
        "Cluster", "KeyValueModel", "KeyValueObserving", "Store", "Support", "TestKit",
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "HTTPServerTests",
      dependencies: [
        "HTTPServer", "Support", "TestKit", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(name: "OutboundTests", dependencies: ["Outbound", "Support", "TestKit"], swiftSettings: strict),
    .testTarget(
      name: "KeywayServerTests",
      dependencies: [
        "Cluster", "HTTPServer", "KeyValueModel", "KeyValueObserving", "KeywayBrowser", "KeywayClient",
        "KeywayServer", "Outbound", "Store", "Support", "TestKit",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "HTTPTypes", package: "swift-http-types"), .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeywayClientTests",
      dependencies: [
        "KeyValueModel", "KeywayClient", "Support", "TestKit",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "keywayTests",
      dependencies: [
        "Cluster", "CommandSupport", "HTTPServer", "KeyValueModel", "keyway", "KeywayClient", "KeywayServer", "Store",
        "TestKit", .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeywayBenchTests",
      dependencies: ["KeyValueModel", "keyway-bench", "Support", "TestKit"],
      swiftSettings: strict),
    .testTarget(
      name: "IntegrationTests",
      dependencies: [
        "Cluster", "KeyValueModel", "keyway", "keyway-bench", "KeywayClient", "Support", "TestKit",
      ],
      exclude: ["Fixtures", "Scripts", "requirements.txt"],
      swiftSettings: strict),
    // What every source file and page keeps to.
    .testTarget(name: "HygieneTests", dependencies: ["Support", "TestKit"], swiftSettings: strict),
  ]
)

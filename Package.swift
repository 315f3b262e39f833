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
    // C is imported by these seven alone. First libmicrohttpd, with Linux calls that Swift's Glibc module lacks.
    .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
    // Second epoll, O_PATH and the names of threads, for the loopback kit, public files and the HTTP server; Swift's
    // Glibc module lacks them too.
    .systemLibrary(name: "CLinux"),
    // Third SHA-256 of Nettle, which libmicrohttpd-dev installs by way of GnuTLS.
    .systemLibrary(name: "CNettle", providers: [.apt(["nettle-dev"])]),
    // Fourth the call by which libmicrohttpd reads, so that requests are judged before it parses them.
    .target(name: "CSocketCalls"),
    // Fifth libpq, PostgreSQL's client library.
    .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
    // Sixth libcurl, an HTTP client with TLS.
    .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    // Seventh the files for browsers and the example, which C embeds in half a second: as Swift's array literals they
    // take a minute.
    .target(name: "CEmbeddedFiles"),
    .target(
      name: "KeywayBrowser", dependencies: ["CEmbeddedFiles", "Digests", "Notation"], exclude: ["Resources"],
      swiftSettings: strict),
    .target(name: "Digests", dependencies: ["CNettle"], swiftSettings: strict),
    // Values behind locks, and threads.
    .target(name: "Locking", dependencies: ["CLinux"], swiftSettings: strict),
    // How numbers and times are written: zero padding, the calendar, RFC 3339.
    .target(name: "Notation", swiftSettings: strict),
    .target(
      name: "Expressions",
      dependencies: ["Notation", .product(name: "BigInt", package: "BigInt")],
      swiftSettings: strict),
    .target(
      name: "KeyValueModel",
      dependencies: [
        "Digests", "Expressions", "Notation",
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
    .target(
      name: "Journal",
      dependencies: [
        "CLinux", "Digests", "Locking", "Notation",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "GRDB", package: "GRDB.swift"), .product(name: "GRDBSQLite", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    // The journal that several nodes share.
    .target(
      name: "PostgresJournal",
      dependencies: [
        "CPostgres", "Journal", "Locking", .product(name: "DequeModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    // Who asks.
    .target(
      name: "Tokens",
      dependencies: [
        "KeyValueModel",
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ],
      swiftSettings: strict),
    // How long things take, and how often they take that long.
    .target(name: "Measuring", swiftSettings: strict),
    // HTTP requests to other servers.
    .target(name: "Outbound", dependencies: ["CCurl", "Locking"], swiftSettings: strict),
    // Turns between clients.
    .target(
      name: "Scheduling",
      dependencies: [.product(name: "DequeModule", package: "swift-collections")],
      swiftSettings: strict),
    .target(
      name: "ModelStore",
      dependencies: [
        "Journal", "KeyValueModel", "KeyValueObserving", "Locking", "Measuring", "Scheduling",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HeapModule", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .target(
      name: "HTTPServer",
      dependencies: [
        "CLinux", "CMicrohttpd", "CSocketCalls", "Locking", "Measuring", "Scheduling",
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .target(
      name: "KeywayAPI",
      dependencies: [
        "CLinux", "Digests", "Expressions", "HTTPServer", "Journal", "KeyValueModel", "KeyValueObserving",
        "KeywayBrowser", "Locking", "Measuring", "ModelStore", "Notation", "Outbound", "Scheduling", "Tokens",
        .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
        .product(name: "DequeModule", package: "swift-collections"),
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .target(
      name: "KeywayClient",
      dependencies: ["KeyValueModel", "Locking"],
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
        "CEmbeddedFiles", "CommandSupport", "HTTPServer", "Journal", "KeyValueModel", "KeywayAPI",
        "KeywayClient", "Locking", "ModelStore", "Notation", "Outbound", "PostgresJournal", "Tokens",
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
        "CommandSupport", "HTTPServer", "Journal", "KeyValueModel", "KeyValueObserving", "KeywayAPI", "KeywayClient",
        "Locking", "ModelStore", "PostgresJournal", "TestKit",
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
        "CLinux", "Journal", "KeyValueModel", "Locking",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      path: "Tests/TestKit",
      swiftSettings: strict),
    .testTarget(
      name: "KeywayClientTests",
      dependencies: [
        "KeyValueModel", "KeywayClient", "Locking", "TestKit",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "keywayTests",
      dependencies: [
        "CommandSupport", "HTTPServer", "KeyValueModel", "keyway", "KeywayAPI", "KeywayClient", "ModelStore", "TestKit",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeywayBenchTests",
      dependencies: ["KeyValueModel", "keyway-bench", "Locking", "TestKit"],
      swiftSettings: strict),
    .testTarget(
      name: "KeywayAPITests",
      dependencies: [
        "HTTPServer", "Journal", "KeyValueModel", "KeyValueObserving", "KeywayAPI", "KeywayBrowser", "KeywayClient",
        "Locking", "ModelStore", "Outbound", "PostgresJournal", "TestKit", "Tokens",
        .product(name: "HTTPTypes", package: "swift-http-types"), .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "IntegrationTests",
      dependencies: [
        "KeyValueModel", "keyway", "keyway-bench", "KeywayClient", "Locking", "PostgresJournal", "TestKit",
      ],
      exclude: ["Scripts", "requirements.txt"],
      swiftSettings: strict),
    .testTarget(
      name: "HTTPServerTests",
      dependencies: [
        "HTTPServer", "Locking", "Measuring", "TestKit", .product(name: "HTTPTypes", package: "swift-http-types"),
        .product(name: "Logging", package: "swift-log"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ExpressionsTests",
      dependencies: ["Expressions", "TestKit", .product(name: "BigInt", package: "BigInt")],
      swiftSettings: strict),
    .testTarget(
      name: "TokensTests",
      dependencies: [
        "KeyValueModel", "TestKit", "Tokens", .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "KeyValueModelTests",
      dependencies: ["KeyValueModel", "Notation", "TestKit"],
      swiftSettings: strict),
    .testTarget(
      name: "KeyValueObservingTests",
      dependencies: [
        "KeyValueModel", "KeyValueObserving", "TestKit",
        .product(name: "OrderedCollections", package: "swift-collections"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "OutboundTests", dependencies: ["Locking", "Outbound", "TestKit"], swiftSettings: strict),
    .testTarget(name: "MeasuringTests", dependencies: ["Measuring", "TestKit"], swiftSettings: strict),
    // What every source file and page keeps to.
    .testTarget(name: "HygieneTests", dependencies: ["Locking", "TestKit"], swiftSettings: strict),
    .testTarget(
      name: "JournalTests",
      dependencies: [
        "Journal", "Locking", "PostgresJournal", "TestKit", .product(name: "GRDB", package: "GRDB.swift"),
      ],
      swiftSettings: strict),
    .testTarget(
      name: "ModelStoreTests",
      dependencies: [
        "Journal", "KeyValueModel", "KeyValueObserving", "Locking", "ModelStore", "PostgresJournal", "Scheduling",
        "TestKit",
      ],
      swiftSettings: strict),
  ]
)

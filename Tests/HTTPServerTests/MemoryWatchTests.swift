import Testing

@testable import HTTPServer

@Suite struct MemoryWatchTests {
  private let machine = MachineMemory(physicalBytes: 4_000)

  private func watch(
    _ ledger: MemoryLedger, bytes: Int = 0, clientBytes: Int = 0, on machine: MachineMemory? = nil
  ) -> MemoryWatch {
    var limits = MemoryLimits()
    limits.bytes = bytes
    limits.clientBytes = clientBytes
    return MemoryWatch(ledger, limits: limits, machine: machine ?? self.machine, now: nil)
  }

  @Test func withoutASettingThreeQuartersOfTheMachineAreForTheProcess() {
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    _ = watch(ledger)
    #expect(ledger.limit == 3_000)
    #expect(ledger.clientLimit == 1_500)
  }

  @Test func theLeastOfTheMachinesLimitsCounts() {
    #expect(MachineMemory(physicalBytes: 9, groupBytes: 7, addressSpaceBytes: 8).bytes == 7)
    #expect(MachineMemory(physicalBytes: 9, groupBytes: 7, addressSpaceBytes: 5).bytes == 5)
  }

  @Test func aGroupIsBoundedByThoseAroundItInBothVersions() {
    let files = [
      "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "500\n",
      "/sys/fs/cgroup/memory/c/memory.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "700\n",
    ]
    let read: (String) -> String? = { files[$0] }
    #expect(MachineMemory.groupBytes(memberships: "0::/a/b\n", read: read) == 500)
    #expect(MachineMemory.groupBytes(memberships: "3:cpu:/c\n9:hugetlb,memory:/c\n", read: read) == 700)
    #expect(MachineMemory.groupBytes(memberships: "3:cpu:/c\nnonsense", read: read) == nil)
  }

  @Test func whatTheModelTakesIsNotForClients() throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    var watch = watch(ledger, bytes: 1_000)
    let held = try ledger.reserve(200, for: .unknown, .responses)
    watch.look(ProcessMemory(residentBytes: 600))
    #expect(ledger.limit == 600)
    #expect(ledger.clientLimit == 300)
    withExtendedLifetime(held) {}
  }

  @Test func clientsKeepAnEighthHoweverLargeTheModelIs() {
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    var watch = watch(ledger, bytes: 800, clientBytes: 30)
    watch.look(ProcessMemory(residentBytes: 5_000))
    #expect(ledger.limit == 100)
    #expect(ledger.clientLimit == 30)
  }

  @Test func announcedMemoryDoesNotHideTheModel() throws {
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    var watch = watch(ledger, bytes: 64_000)
    watch.look(ProcessMemory(residentBytes: 6_400))
    // None of the announced bytes have arrived, so the process uses no more memory than before.
    let announced = try ledger.reserve(6_400, for: .unknown, .requestBodies)
    watch.look(ProcessMemory(residentBytes: 6_400))
    #expect(ledger.limit == 64_000 - 6_300)
    withExtendedLifetime(announced) {}
  }

  @Test func anAddressSpaceIsKeptFreeOfTheLastSixteenth() {
    let ledger = MemoryLedger(limit: .max, clientLimit: .max)
    var watch = watch(ledger, on: MachineMemory(physicalBytes: 16_000, addressSpaceBytes: 1_600))
    watch.look(ProcessMemory(residentBytes: 100, addressSpaceBytes: 1_000))
    #expect(ledger.limit == 500)
  }

  @Test func thisProcessTakesMemoryOfThisMachine() throws {
    let now = try #require(ProcessMemory.current)
    #expect(now.residentBytes > 0)
    #expect(now.addressSpaceBytes >= now.residentBytes)
    #expect(MachineMemory.current.bytes >= now.residentBytes)
  }
}

/// The schema of the tests that compare a stream that was cut with an unbroken one: every kind of key.
enum ShadowSchema {
  static let yaml = """
    entities:
      Person:
        keys:
          firstName: { type: string, optional: false }
          lastName: { type: string, optional: false }
          fullName: { type: string, computed: "firstName + ' ' + lastName" }
          friends: { toMany: Person, inverse: friends }
        display: [fullName]
      Employee:
        extends: Person
        keys:
          salary: { type: number, default: 0, indexed: true }
          department: { toOne: Department, inverse: employees, indexed: true }
          tags: { toMany: Tag, inverse: holders }
          headName: { type: string, computed: department.head.lastName }
        display: [fullName, department.name, headName]
      Department:
        keys:
          name: { type: string }
          head: { toOne: Employee }
          employees: { toMany: Employee, ordered: true, inverse: department }
          totalSalary: { type: number, computed: employees.@sum.salary }
        display: [name, totalSalary]
      Tag:
        keys:
          name: { type: string }
          holders: { toMany: Employee, inverse: tags }
      Account:
        keys:
          balance: { type: number, notifies: changed }
          secret: { type: number, notifies: manual, default: 0 }
          owner: { toOne: Person }
          ownerName: { type: string, computed: owner.lastName }
        display: [balance, secret, ownerName]

    """
}

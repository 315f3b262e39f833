"""Uses the console of a server with the example's objects, one function of it a step. Fails where it does not do it.

Usage: console.py SERVER STEP [TOKEN]
"""

import json
import time

from selenium.webdriver.common.keys import Keys

from console_page import run

MARKUP = "<img src=x onerror=alert(1)>"


def entities(console, server):
    console.open()
    for entity in server.send("GET", "/v1/entities")["$defs"]:
        count = server.get(entity + "?limit=1")["count"]
        console.until(
            lambda: any(link.accessible_name.split() == [entity, str(count)] for link in console.named("link", entity)),
            f"{entity} with its {count} objects")
    before = server.get("Quote?limit=1")["count"]
    server.set("Quote/NEW", {"symbol": "NEW"})
    console.find("link", f"Quote {before + 1}")
    server.send("DELETE", "/v1/objects/Quote/NEW")
    console.find("link", f"Quote {before}").click()
    console.find("heading", "Quote")
    assert console.driver.title.startswith("Quote"), console.driver.title
    console.until(lambda: console.text("#connection") == "live", "that it is connected")
    console.check_log()


def table(console, server):
    console.open("#/objects/Employee")
    console.find("columnheader", "lastName")
    console.until(lambda: console.value("Employee/1", "salary") != "", "a salary")
    server.set("Employee/1/middleName", MARKUP)
    console.until_equal(MARKUP, lambda: console.value("Employee/1", "middleName"), "markup as text")
    server.set("Employee/1/middleName", None)
    console.until_equal("", lambda: console.value("Employee/1", "middleName"), "null as no text")
    filter_input = console.find("input", "Filter")
    filter_input.send_keys("salary > 240.0" + Keys.ENTER)
    expected = [row["@ref"] for row in server.get("Employee?filter=salary%3E240.0")["objects"]]
    assert 0 < len(expected) < server.get("Employee")["count"]
    console.until_equal(expected, lambda: console.column("Object"), "the rows of the filter")
    console.clear_and_type(filter_input, "salary >" + Keys.ENTER)
    console.until(lambda: console.problem, "what is wrong with the filter")
    assert "salary >" not in console.problem or len(console.problem) > 10, console.problem
    assert console.column("Object") == [] and console.text(".headline .count") == "", "the rows of another filter"
    console.clear_and_type(filter_input, Keys.ENTER)
    console.until_equal("", lambda: console.problem, "that the problem is over")
    console.until_equal(server.get("Employee")["count"], lambda: len(console.column("Object")), "all rows")
    for sort, direction in (("salary", "ascending"), ("-salary", "descending")):
        console.find("columnheader", "salary").click()
        expected = [row["@ref"] for row in server.get("Employee?sort=" + sort)["objects"]]
        console.until_equal(expected, lambda: console.column("Object"), direction + " rows")
        assert console.find("columnheader", "salary").get_attribute("aria-sort") == direction
    console.check_log(400)


def sections(console, server):
    console.open("#/objects/Employee")
    server.set("Employee/1/department", "Department/1")
    section = console.find("input", "Sections")
    section.send_keys("department")
    heading = lambda: console.text("tr.section")
    wanted = server.get("Employee?section=department")
    names = "\n".join(f"{section['name'] or 'none'} ({section['count']})" for section in wanted["sections"])
    console.until_equal(names, heading, "the sections")
    console.until_equal([row["@ref"] for row in wanted["objects"]], lambda: console.column("Object"), "their rows")
    server.set("Employee/1/department", None)
    wanted = server.get("Employee?section=department")
    console.until_equal([row["@ref"] for row in wanted["objects"]], lambda: console.column("Object"), "another section")
    server.set("Employee/1/department", "Department/1")
    console.driver.find_element("tag name", "summary").click()
    console.find("input", "email").click()
    console.until(lambda: not console.named("columnheader", "email"), "the table without email")
    console.driver.back()
    console.find("columnheader", "email")
    console.check_log()


def editing(console, server):
    console.open("#/objects/Account")
    server.set("Account/1/balance", 100)
    console.until_equal("100", lambda: console.value("Account/1", "balance"), "the balance")
    console.double_click(console.cell("Account/1", "balance"))
    console.press("120.5", Keys.ENTER)
    console.until_equal("120.5", lambda: console.value("Account/1", "balance"), "what was written")
    assert server.get("Account/1/balance") == 120.5
    console.cell("Account/1", "balance").click()
    console.press(Keys.ENTER)
    console.find("input", "balance of Account/1")
    console.press("7", Keys.ESCAPE)
    console.until_equal("120.5", lambda: console.value("Account/1", "balance"), "the old value")
    assert server.get("Account/1/balance") == 120.5
    console.press(Keys.ENTER)
    console.find("input", "balance of Account/1")
    console.press("much", Keys.ENTER)
    console.until(lambda: "balance" in console.problem, "why it is refused")
    console.find("input", "balance of Account/1")
    console.press_with(Keys.CONTROL, "a")
    console.press("130", Keys.ENTER)
    console.until_equal("130", lambda: console.value("Account/1", "balance"), "the mended value")
    console.until_equal("", lambda: console.problem, "that the problem is over")
    console.until_equal(130, lambda: server.get("Account/1/balance"), "the value at the server")
    # The arrows go to the next key, which is written as the first was.
    console.press(Keys.ARROW_RIGHT, Keys.ENTER)
    console.find("input", "openingBalance of Account/1")
    console.press(Keys.ESCAPE, Keys.HOME)
    assert console.driver.switch_to.active_element.tag_name == "td"
    # What is computed is not written.
    console.double_click(console.cell("Account/1", "ownerName"))
    assert not console.named("input", "ownerName")
    console.check_log(422)


def lines(console, server):
    """A text keeps its line breaks."""
    server.set("Note/1", {"text": "one\ntwo"})
    server.set("Note/2", {"text": "one\r\ntwo"})
    for address, text in [("#/objects/Note", "one\ntwo"), ("#/objects/Note/1", "one\ntwo\n3")]:
        console.open(address)
        console.until(lambda: "two" in console.value("Note/1", "text"), "the text")
        console.double_click(console.cell("Note/1", "text"))
        assert console.find("input", "text of Note/1").get_attribute("value") == text
        console.press_with(Keys.CONTROL, Keys.END)
        console.press_with(Keys.SHIFT, Keys.ENTER)
        console.press("3", Keys.ENTER)
        console.until_equal(text + "\n3", lambda: server.get("Note/1/text"), "one more line")
        console.until(lambda: not console.named("input", "text of Note/1"), "that it is written")
    console.open("#/objects/Note")
    console.double_click(console.cell("Note/2", "text"))
    console.press_with(Keys.CONTROL, Keys.END)
    console.press("!", Keys.ENTER)
    console.until_equal("one\r\ntwo!", lambda: server.get("Note/2/text"), "the line breaks that it had")
    console.open("#/new/Note")
    console.find("input", "text").send_keys("first")
    console.press_with(Keys.SHIFT, Keys.ENTER)
    console.press("second")
    console.find("input", "Id").send_keys("3" + Keys.ENTER)
    console.find("heading", "Note/3")
    assert server.get("Note/3/text") == "first\nsecond"
    console.check_log()


def exactness(console, server):
    """Nothing is written otherwise than it was typed, or shown as exact that is not."""
    big = 2**53 + 1
    server.set("Note/1", {"tags": {"n": 1}})
    server.set("Note/2", {"tags": {"n": big}})
    server.set("Account/1/balance", 1e20)
    for address in ["#/objects/Note", "#/objects/Note/2"]:
        console.open(address)
        console.until_equal('≈ {"n":9007199254740992}', lambda: console.value("Note/2", "tags"), "that it is rounded")
        console.double_click(console.cell("Note/2", "tags"))
        console.until(lambda: "beyond 2⁵³" in console.problem, "why it is not edited")
        assert not console.named("input", "tags of Note/2")
    console.open("#/objects/Note")
    console.double_click(console.cell("Note/1", "tags"))
    refused = [
        (f'{{"n":{big}}}', "beyond 2⁵³"), ("12345678901234567890", "beyond 2⁵³"), ("[1e999]", "1.8e308"),
        ('{"a":{"b":1},"c":[{"b":1}],"\\u0061":2}', "occurs twice"),
    ]
    for text, reason in refused:
        console.press_with(Keys.CONTROL, "a")
        console.press(text, Keys.ENTER)
        console.until(lambda: reason in console.problem, f"why {text} is refused")
    assert server.get("Note/1/tags") == {"n": 1}
    console.press_with(Keys.CONTROL, "a")
    kept = {"a": [{"b": 1}, {"b": "12345678901234567890: {"}], "b": -1.5e3}
    console.press(json.dumps(kept), Keys.ENTER)
    console.until_equal(kept, lambda: server.get("Note/1/tags"), "JSON that is kept whole")
    console.until_equal("", lambda: console.problem, "no problem")
    console.open("#/objects/Account")
    console.until_equal("100000000000000000000", lambda: console.value("Account/1", "balance"), "what is exact")
    server.set("Transaction/1/amount", 5)
    for reference, key, typed, reason in [
        ("Account/1", "balance", "0x10", "balance must be a number, such as 12"),
        ("Account/1", "balance", "1,5", "balance must be a number, such as 12"),
        ("Account/1", "balance", "1e999", "larger than a number can be"),
        ("Account/1", "owner", "7", "write Person/7"),
        ("Transaction/1", "amount", Keys.BACKSPACE, "amount is required"),
    ]:
        console.open("#/objects/" + reference)
        console.until(lambda: console.value(reference, key) != "", "the value")
        console.double_click(console.cell(reference, key))
        console.press_with(Keys.CONTROL, "a")
        console.press(typed, Keys.ENTER)
        console.until(lambda: reason in console.problem, f"why {typed} is refused")
    assert server.get("Account/1")["balance"] == 1e20 and server.get("Transaction/1/amount") == 5
    console.check_log()


def conflicts(console, server):
    """Another client writes while a value is edited."""
    for address in ["#/objects/Account", "#/objects/Account/1"]:
        server.set("Account/1/balance", 100)
        console.open(address)
        console.until_equal("100", lambda: console.value("Account/1", "balance"), "the balance")

        def begin():
            console.until(lambda: not console.named("input", "balance of Account/1"), "that what was before is over")
            console.double_click(console.cell("Account/1", "balance"))
            balance = console.find("input", "balance of Account/1")
            console.until(lambda: balance.get_attribute("aria-busy") is None, "that it has read what it edits")

        # Another key of the object is no conflict.
        begin()
        server.set("Account/1/openingBalance", 3)
        console.press("60", Keys.ENTER)
        console.until_equal(60, lambda: server.get("Account/1/balance"), "what was written")
        console.until_equal("60", lambda: console.value("Account/1", "balance"), "what was written")
        assert console.problem == "", console.problem
        # The same key is: the first Enter says what it is now, the second writes.
        begin()
        server.set("Account/1/balance", 70)
        console.press("80", Keys.ENTER)
        console.until(lambda: "it is now 70" in console.problem, "what it is now")
        assert server.get("Account/1/balance") == 70
        console.press(Keys.ENTER)
        console.until_equal(80, lambda: server.get("Account/1/balance"), "what was written")
        console.until_equal("", lambda: console.problem, "that the problem is over")
        # What was typed nothing in is written too.
        begin()
        server.set("Account/1/balance", 71)
        console.press(Keys.ENTER)
        console.until(lambda: "it is now 71" in console.problem, "what it is now")
        console.press(Keys.ENTER)
        console.until_equal(80, lambda: server.get("Account/1/balance"), "what the input has")
        # Escape ends the editing, and its problem.
        begin()
        server.set("Account/1/balance", 72)
        console.press("90", Keys.ENTER)
        console.until(lambda: "it is now 72" in console.problem, "what it is now")
        console.press(Keys.ESCAPE)
        console.until_equal("72", lambda: console.value("Account/1", "balance"), "the value of the other")
        assert console.problem == "", console.problem
    console.check_log(412)


def leaving(console, server):
    """What was typed stays until Enter or Escape; what was not touched is left."""
    server.set("Account/1/balance", 100)
    console.open("#/objects/Account")
    assert not console.named("link", "Sign in"), "the server has no keys"
    console.until_equal("100", lambda: console.value("Account/1", "balance"), "the balance")
    console.double_click(console.cell("Account/1", "balance"))
    console.press("55")
    console.cell("Account/1", "openingBalance").click()
    assert console.find("input", "balance of Account/1").get_attribute("value") == "55"
    console.double_click(console.cell("Account/1", "openingBalance"))
    console.cell("Account/1", "ownerName").click()
    console.until(lambda: not console.named("input", "openingBalance"), "that what was not touched is left")
    console.find("input", "balance of Account/1").send_keys(Keys.ENTER)
    console.until_equal(55, lambda: server.get("Account/1/balance"), "what was written")
    # An object that is deleted while it is shown offers nothing, and lives when it is made again.
    console.open("#/objects/Note/back")
    console.until(lambda: "object Note/back does not exist" in console.problem, "that it is not there")
    for text in ["first", "second"]:
        server.set("Note/back", {"text": text, "labels": ["a"]})
        console.until_equal(text, lambda: console.value("Note/back", "text"), "the note")
        assert console.problem == ""
        console.find("button", "Delete")
        console.find("button", "Remove a")
        assert any(box.is_displayed() for box in console.named("input", "Add to labels"))
        server.send("DELETE", "/v1/objects/Note/back")
        console.until(lambda: "deleted" in console.text(".headline"), "that it is deleted")
        shown = [each for role in ("button", "input") for each in console.all(role) if each.is_displayed()]
        assert not shown, [each.accessible_name for each in shown]
        assert console.driver.execute_script(
            "return getComputedStyle(document.querySelector('.keys .value')).textDecorationLine") == "line-through"
    console.check_log(404)


def many_rows(console, server):
    rows = 10_000
    for start in range(0, rows, 1000):
        server.commit(*[
            {"op": "create", "object": f"Transaction/n{number:05}", "value": {"amount": number, "payee": f"p{number}"}}
            for number in range(start, start + 1000)])
    console.open("#/objects/Transaction?sort=-amount&filter=payee.startsWith('p')")
    console.until_equal(f"Transaction/n{rows - 1:05}", lambda: (console.column("Object") or [""])[0], "the first row")
    assert len(console.column("Object")) < 100
    grid = console.driver.find_element("css selector", "[role=grid]")
    assert grid.get_attribute("aria-rowcount") == str(rows + 1)
    console.driver.execute_script("const box = document.querySelector('.scroller'); box.scrollTop = box.scrollHeight")
    console.until_equal("Transaction/n00000", lambda: (console.column("Object") or [""])[-1], "the last row")
    server.set("Transaction/n00000/payee", "p-last")
    console.until_equal("p-last", lambda: console.value("Transaction/n00000", "payee"), "the last row live")
    console.cell("Transaction/n00000", "payee").click()
    console.press_with(Keys.CONTROL, Keys.HOME)
    console.until_equal(f"Transaction/n{rows - 1:05}", lambda: console.column("Object")[0], "the first row again")
    console.press(Keys.ARROW_DOWN, Keys.PAGE_DOWN, Keys.ARROW_UP)
    focused = console.driver.execute_script("return document.activeElement.closest('tr')?.dataset.ref")
    assert focused and focused != f"Transaction/n{rows - 1:05}", focused
    assert len(console.column("Object")) < 100
    console.check_log()


def objects(console, server):
    server.set("Account/1/balance", 100)
    console.open("#/objects/Account/1")
    for key in server.get("Account/1"):
        if not key.startswith("@"):
            console.cell("Account/1", key)
    console.until_equal("100", lambda: console.value("Account/1", "balance"), "the balance")
    server.set("Account/1/balance", 105)
    console.until_equal("105", lambda: console.value("Account/1", "balance"), "the new balance")
    console.double_click(console.cell("Account/1", "balance"))
    console.press("110", Keys.ENTER)
    console.until_equal("110", lambda: console.value("Account/1", "balance"), "what was written")
    # Two write at once: the second hears of it, and nothing is lost.
    console.double_click(console.cell("Account/1", "balance"))
    balance = console.find("input", "balance of Account/1")
    console.until(lambda: balance.get_attribute("aria-busy") is None, "that it has read what it edits")
    server.set("Account/1/balance", 50)
    console.press("60", Keys.ENTER)
    console.until(lambda: console.problem, "that another client was faster")
    assert server.get("Account/1/balance") == 50
    console.press(Keys.ESCAPE)
    console.until_equal("50", lambda: console.value("Account/1", "balance"), "what the other client wrote")
    # The revision is the object's own, whatever was committed since, also where another has changed what is computed.
    own = lambda: f"revision {server.get('Account/1')['@revision']}"
    console.until_equal(own(), lambda: console.text(".headline .count"), "the object's revision")
    owner = server.get("Account/1/owner")
    server.set(owner + "/lastName", "Hopper")
    console.until(lambda: "Hopper" in console.value("Account/1", "ownerName"), "what is computed")
    time.sleep(0.5)
    assert console.text(".headline .count") == own(), console.text(".headline .count")
    server.set("Account/1/balance", 51)
    console.until_equal(own(), lambda: console.text(".headline .count"), "the revision after another value")
    console.open("#/objects/Account/1")
    console.until_equal(own(), lambda: console.text(".headline .count"), "the revision from the start")
    time.sleep(0.5)
    assert console.text(".headline .count") == own(), console.text(".headline .count")
    console.find("link", owner).click()
    console.find("heading", owner)
    server.set("Person/lost", {"firstName": "Lost", "lastName": "Soul"})
    console.open("#/objects/Person/lost")
    console.until_equal("Soul", lambda: console.value("Person/lost", "lastName"), "the person")
    server.send("DELETE", "/v1/objects/Person/lost")
    console.until(lambda: "deleted" in console.text(".headline"), "that it is deleted")
    assert not console.named("button", "Delete"), "what is deleted cannot be deleted"
    console.open("#/objects/Person/lost")
    console.until(lambda: "object Person/lost does not exist" in console.problem, "that it is not there")
    assert not console.named("button", "Delete"), "there is nothing to delete"
    for address, problem in [("#/objects/Persn", "no entity 'Persn'"), ("#/nothing", "nothing at this address")]:
        console.open(address)
        console.find("heading", "Not found")
        assert problem in console.problem, console.problem
        console.find("link", "To the start").click()
        console.find("heading", "Keyway")
    # Without a server the console says so in plain words.
    console.driver.set_network_conditions(offline=True, latency=0, throughput=-1)
    console.find("link", "Status").click()
    console.until(lambda: console.problem == "This device is offline.", "that there is no network")
    console.driver.delete_network_conditions()
    console.until(lambda: not console.problem, "that the network is back")
    console.driver.get_log("browser")


def members(console, server):
    server.set("Department/1/employees", ["Employee/1", "Employee/2"])
    console.open("#/objects/Department/1")
    shown = lambda: console.text(".members a").split("\n")
    stored = lambda: server.get("Department/1/employees")
    console.until_equal(["Employee/1", "Employee/2"], shown, "the members")
    console.find("input", "Add to employees").send_keys("Employee/3" + Keys.ENTER)
    console.until_equal(["Employee/1", "Employee/2", "Employee/3"], shown, "one more")
    console.find("button", "Move Employee/3 up in employees").click()
    console.until_equal(["Employee/1", "Employee/3", "Employee/2"], shown, "another order")
    console.until_equal(["Employee/1", "Employee/3", "Employee/2"], stored, "the order at the server")
    console.find("button", "Move Employee/1 down in employees").click()
    console.until_equal(["Employee/3", "Employee/1", "Employee/2"], shown, "yet another order")
    console.find("button", "Remove Employee/3 from employees").click()
    console.until_equal(["Employee/1", "Employee/2"], shown, "one less")
    console.until_equal(["Employee/1", "Employee/2"], stored, "one less at the server")
    console.find("input", "Add to employees").send_keys("Employee/none" + Keys.ENTER)
    console.until(lambda: "Employee/none" in console.problem, "why it is refused")
    server.send("POST", "/v1/objects/Department/1/employees?index=0", "Employee/3")
    console.until_equal(["Employee/3", "Employee/1", "Employee/2"], shown, "another client's member")
    console.check_log(422)


def creating(console, server):
    console.open("#/objects/Person")
    console.find("link", "New Person").click()
    console.find("input", "firstName").send_keys("Emmy")
    console.find("button", "Create").click()
    console.until(lambda: "lastName" in console.problem, "what is missing")
    console.find("input", "lastName").send_keys(MARKUP)
    console.find("input", "Id").send_keys("emmy")
    console.find("button", "Create").click()
    console.find("heading", "Person/emmy")
    console.until_equal(MARKUP, lambda: console.value("Person/emmy", "lastName"), "the new person")
    assert server.get("Person/emmy")["firstName"] == "Emmy"
    console.find("button", "Delete").click()
    console.find("button", "Cancel").click()
    assert server.is_there("Person/emmy")
    console.find("button", "Delete").click()
    console.find("button", "Delete object").click()
    console.find("heading", "Person")
    console.until(lambda: not server.is_there("Person/emmy"), "that it is deleted")
    console.check_log(422)


def stream(console, server):
    console.open("#/stream")
    url = console.find("input", "URL")
    console.clear_and_type(url, "/v1/objects/Quote/AAPL/price?options=initial,new" + Keys.ENTER)
    data = lambda: console.text(".events .data").split("\n")
    console.until(lambda: '"initial":true' in console.text(".events .data"), "the first state")
    server.set("Quote/AAPL/price", 1)
    console.until(lambda: '"new":1}' in data()[0], "the change")
    console.find("button", "Cut").click()
    console.until(lambda: "cut" in console.text(".headline"), "that it is cut")
    server.set("Quote/AAPL/price", 2)
    server.set("Quote/AAPL/price", 3)
    console.find("button", "Resume").click()
    console.until(lambda: '"new":3}' in data()[0], "what was missed")
    assert '"new":2}' in data()[1] and len(data()) == 4, data()
    ids = console.driver.execute_script("return [...document.querySelectorAll('.events tbody tr')].map(r => r.cells[2].textContent)")
    assert len(set(ids)) == 4 and all(ids), ids
    console.clear_and_type(url, "/v1/objects/Quote/NONE/price" + Keys.ENTER)
    console.until(lambda: console.problem, "that there is no such object")
    console.check_log(404)


def journal(console, server):
    server.set("Quote/AAPL/price", 41)
    console.open("#/journal")
    console.until(lambda: "Quote/AAPL keyPath price value 41" in console.text(".events .data"), "what was before")
    server.set("Quote/AAPL/price", 42)
    console.until(lambda: "Quote/AAPL keyPath price value 42" in console.text(".events tbody tr:first-child"), "the new")
    revision = server.send("GET", "/v1/status")["revision"]
    assert console.text(".events tbody tr:first-child td:first-child") == str(revision)
    console.find("link", "Quote/AAPL").click()
    console.find("heading", "Quote/AAPL")
    console.check_log()


def status(console, server):
    console.open("#/status")
    console.until(lambda: server.send("GET", "/v1/status")["epoch"] in console.text(".facts"), "the epoch")
    for figure in ("Commits", "Requests", "Notifications", "Streams", "Cells"):
        console.find("img", figure + ": now")
    points = lambda: console.driver.execute_script(
        "return Math.min(...[...document.querySelectorAll('.line')].map(l => (l.getAttribute('points') ?? '').split(' ').length))")
    console.until(lambda: points() >= 3, "pictures of some values")
    console.check_log()


def session(console, server, token):
    console.open()
    console.find("heading", "Sign in")
    field = console.find("input", "Token")
    field.send_keys("no token" + Keys.ENTER)
    console.until(lambda: console.problem, "that this is no token")
    console.clear_and_type(field, token + Keys.ENTER)
    console.find("button", "Sign out")
    console.find("link", "Journal")
    console.find("link", "Status")
    console.find("link", "Account").click()
    console.find("columnheader", "balance")
    console.find("link", "Account 0")
    assert token not in console.driver.page_source
    assert not console.driver.execute_script("return document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage })").count(token)
    console.check_access("Account, signed in")
    console.find("button", "Sign out").click()
    console.find("heading", "Sign in")
    console.check_access("Sign in")
    console.find("input", "Token").send_keys(token + Keys.ENTER)
    console.find("button", "Sign out")
    console.until(lambda: console.text("#connection") == "live", "that it is connected")
    server.send("PUT", "/v1/access/revocations/ann", {})
    console.find("heading", "Sign in")
    console.until(lambda: console.problem, "that the token was revoked")
    console.check_log(401, 403)


def reader(console, server, token):
    """Of a schema whose key flagged is for moderators: ann may read the rest, and write her own posts."""
    console.open()
    console.find("input", "Token").send_keys(token + Keys.ENTER)
    console.find("link", "Post").click()
    console.until_equal(["hers", "another's"], lambda: console.column("text"), "the posts")
    assert not console.named("columnheader", "flagged")
    console.double_click(console.cell("Post/1", "text"))
    console.press("still hers", Keys.ENTER)
    console.until_equal("still hers", lambda: server.get("Post/1/text"), "what ann wrote")
    console.until_equal("", lambda: console.problem, "no problem")
    console.double_click(console.cell("Post/2", "text"))
    console.press("hers now", Keys.ENTER)
    console.until(lambda: console.problem, "that she may not")
    assert server.get("Post/2/text") == "another's"
    console.find("link", "Post/1").click()
    console.until_equal("still hers", lambda: console.value("Post/1", "text"), "the post")
    assert "flagged" not in console.text(".keys")
    # What is for admins is not offered to her, and by its address says whom it is for.
    assert not console.named("link", "Journal") and not console.named("link", "Status")
    for address in ["#/journal", "#/status"]:
        console.open(address)
        console.until(lambda: "is for admins" in console.problem, "whom it is for")
        console.find("link", "To the start")
    console.find("link", "Stream").click()
    assert console.find("input", "URL").get_attribute("value") == "/v1/objects/Post"
    # Whether she may delete is known where she has tried.
    console.open("#/objects/Post/2")
    console.find("button", "Delete").click()
    console.find("button", "Delete object").click()
    console.until(lambda: console.problem, "that she may not")
    console.until(lambda: console.named("button", "Delete")[0].get_attribute("disabled"), "that it is in vain")
    assert server.is_there("Post/2")
    console.check_log(401, 403)


VIEWS = [
    "#/", "#/objects/Employee?section=department", "#/objects/Department/1", "#/new/Employee", "#/stream", "#/journal",
    "#/status", "#/objects/Employee?filter=salary%20%3E", "#/nothing",
]


def looks(console, server):
    for address in VIEWS:
        console.open(address)
        console.until(lambda: console.text("#connection") == "live", "that it is connected")
        heading = console.find("heading", "")
        assert len(console.all("heading")) == 1 and heading.text
        for summary in console.driver.find_elements("tag name", "summary"):
            summary.click()
        for width in (380, 768, 1280, 1600):
            console.resize(width, 800)
            console.check_width(f"{address} at {width}")
        for scheme in ("light", "dark"):
            console.prefer(scheme)
            for width in (380, 1280):
                console.resize(width, 800)
                console.check_access(f"{address}, {scheme}, {width}")
        console.prefer("light")
    console.check_log(400)


run({
    "entities": entities, "table": table, "sections": sections, "editing": editing, "lines": lines,
    "exactness": exactness, "conflicts": conflicts, "leaving": leaving, "many-rows": many_rows, "objects": objects,
    "members": members, "creating": creating, "stream": stream, "journal": journal, "status": status,
    "session": session, "reader": reader, "looks": looks,
})

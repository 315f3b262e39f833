"""Checks keyway.js in Chromium: three tabs, 500 cells, observations and queries, one stream; a server that is written
to, cut off, killed, restarted and wiped. In the end all that is shown is what a fetch gives, and each observation has
heard each commit once.

Usage: client.py KEYWAY [SEED [STEPS]]
"""

import random
import signal
import sys
import time

from world import Proxy, Server, chromium, load, until

QUERIES = [
    {"entity": "Item", "filter": "value > 500", "sort": "-value,name"},
    {"entity": "Item", "section": "group", "sort": "value", "limit": 40},
]


class Run:
    def __init__(self, program, seed, steps):
        self.random = random.Random(seed)
        self.steps = steps
        self.server = Server(program)
        self.server.start()
        self.commits = []
        self.objects = []
        self.deleted = set()
        self.fill()
        self.proxy = Proxy(self.server.port, seed)
        self.page = f"http://127.0.0.1:{self.proxy.port}/healthz"
        self.driver = chromium()
        self.tabs = {}
        self.count = 0

    def fill(self):
        """300 items in a store that is new; what was committed before is of another one."""
        self.objects = [f"Item/{n}" for n in range(300)]
        create = [{"op": "create", "object": ref, "value": {"name": ref, "value": n, "group": f"g{n % 5}"}}
                  for n, ref in enumerate(self.objects)]
        self.server.ask("POST", "/v1/transactions", {"operations": create})

    def write(self):
        """One commit of one to three values, or of an object that goes or comes."""
        what = self.random.random()
        if what < 0.9:
            refs = self.random.sample(self.objects, self.random.randint(1, 3))
            operations = []
            for ref in refs:
                key, value = self.random.choice(
                    [("value", self.random.randint(0, 999)), ("group", f"g{self.random.randint(0, 6)}")])
                operations.append({"op": "set", "object": ref, "keyPath": key, "value": value})
        else:
            # The last ones alone: the first are observed.
            ref = f"Item/{self.random.randint(250, 299)}"
            isThere = self.server.ask("GET", f"/v1/objects/{ref}")[0]
            operations = [{"op": "delete", "object": ref} if isThere else
                          {"op": "create", "object": ref, "value": {"name": ref, "value": 1, "group": "g1"}}]
            self.deleted.add(ref)
            self.objects = [each for each in self.objects if each != ref] + ([] if isThere else [ref])
        answer, _ = self.server.ask("POST", "/v1/transactions", {"operations": operations})
        self.commits.append((answer["revision"], operations))

    # The tabs

    def open(self):
        """A tab of about a third of the cells."""
        if self.tabs:
            self.driver.switch_to.new_window("tab")
        n = self.count
        self.count += 1
        cells = {f"c{m}": f"Item/{(n * 160 + m) % 300}" for m in range(160)}
        observations = [f"Item/{(n * 7 + m) % 200}" for m in range(6)]
        # Nothing is lost of a page that a cut keeps from loading.
        budget, self.proxy.bytes = self.proxy.bytes, None
        load(self.driver, self.page, "helper.begin(keyway.Keyway, given[0])",
             {"cells": cells, "observations": observations, "queries": QUERIES})
        self.proxy.bytes = budget
        self.tabs[self.driver.current_window_handle] = n

    def at(self, tab, script, *arguments):
        self.driver.switch_to.window(tab)
        return self.driver.execute_script(script, *arguments)

    def freeze(self, state):
        self.driver.execute_cdp_cmd("Page.setWebLifecycleState", {"state": state})

    # What can happen

    def some_tab(self):
        return self.random.choice(list(self.tabs))

    def rebind(self):
        tab = self.some_tab()
        for _ in range(10):
            self.at(tab, "page.show(...arguments)", f"c{self.random.randint(0, 159)}", self.random.choice(self.objects))

    def hide(self):
        tab = self.some_tab()
        for _ in range(10):
            self.at(tab, "page.hide(...arguments)", f"c{self.random.randint(0, 159)}", self.random.random() < 0.4)

    def set(self):
        """A page's own write, which its observations show once."""
        ref = f"Item/{self.random.randint(0, 199)}"
        value = self.random.randint(0, 999)
        tab = self.some_tab()
        self.driver.switch_to.window(tab)
        script = """const [ref, value, done] = arguments
        page.keyway.set(ref, 'value', value).then(() => done(null), error => done(error.detail))"""
        budget, self.proxy.bytes = self.proxy.bytes, None
        error = self.driver.execute_async_script(script, ref, value)
        self.proxy.bytes = budget
        # A write whose connection was cut may have been done: then its commit is the newest.
        revision = self.server.ask("GET", "/v1/status")[0]["revision"]
        last = self.commits[-1][0] if self.commits else 0
        if error is None or revision > last:
            self.commits.append((revision, [{"op": "set", "object": ref, "keyPath": "value", "value": value}]))

    def kill(self):
        self.server.end(self.random.choice([signal.SIGKILL, signal.SIGTERM]))
        self.server.start()

    def wipe(self):
        # The new store lacks one of what is shown, so that nothing can be gone on with at all.
        lost = "Item/lost"
        self.server.ask("PUT", f"/v1/objects/{lost}", {"value": 1})
        self.deleted.add(lost)
        self.at(self.some_tab(), "page.show(...arguments)", "lost", lost)
        self.settle()
        self.check()
        self.proxy.isShut = True
        self.server.wipe()
        self.commits = []
        self.fill()
        before = {tab: len(self.at(tab, "return page.resets")) for tab in self.tabs}
        self.proxy.isShut = False
        until(lambda: all(self.at(tab, "return page.resets")[before[tab]:] == ["epoch"] for tab in self.tabs),
              "resets of a wiped store")

    def change_tabs(self):
        tab = self.some_tab()
        self.driver.switch_to.window(tab)
        self.driver.close()
        del self.tabs[tab]
        self.driver.switch_to.window(next(iter(self.tabs)))
        self.open()

    def freeze_one(self):
        """A tab that is frozen for a while holds nothing up."""
        tab = self.some_tab()
        self.driver.switch_to.window(tab)
        self.freeze("frozen")
        others = [each for each in self.tabs if each != tab]
        self.write()
        until(lambda: all(self.at(each, "return page.keyway.state") == "live" for each in others), "live tabs")
        for _ in range(3):
            self.write()
        until(lambda: len(self.server.streams()) == 1, "one stream")
        self.driver.switch_to.window(tab)
        self.freeze("active")

    # What has to hold

    def differences(self):
        items = {}
        path = "/v1/objects/Item?limit=1000"
        for row in self.server.ask("GET", path)[0]["objects"]:
            items[row["@ref"]] = {"value": row["value"], "group": row["group"]}
        fetched = []
        for query in QUERIES:
            path = "/v1/objects/Item?limit=%s" % query.get("limit", 1000)
            for name in ("filter", "sort", "section"):
                if name in query:
                    path += f"&{name}=" + query[name].replace(" ", "%20").replace(">", "%3E")
            fetched.append(self.server.ask("GET", path)[0])
        found = []
        for tab in self.tabs:
            state = self.at(tab, "return page.state()")
            found += state["mistakes"]
            if state["state"] != "live":
                found.append(f"{tab} is {state['state']}")
            for ref, values in state["cells"]:
                # What was deleted once leaves its cell empty, also where it is made again.
                if values != items.get(ref) and not (values is None and ref in self.deleted):
                    found.append(f"tab {self.tabs[tab]}: {ref} shows {values} and is {items.get(ref)}")
            for shown, fetch, query in zip(state["queries"], fetched, QUERIES):
                # A set of the value that it is already moves the revision alone, which is told nobody.
                pairs = [(a, b) for a, b in zip(shown["rows"], fetch["objects"])
                         if {**a, "@revision": 0} != {**b, "@revision": 0}]
                if pairs or len(shown["rows"]) != len(fetch["objects"]):
                    found.append(f"tab {self.tabs[tab]}: {query} shows {len(shown['rows'])} other rows: {pairs[:2]}")
                if shown["count"] != len(fetch["objects"]):
                    found.append(f"{query} counts {shown['count']}")
                if "limit" not in query and shown.get("sections") != fetch.get("sections"):
                    found.append(f"{query} shows sections {shown.get('sections')}")
                counts = sum(section["count"] for section in shown.get("sections") or [])
                if "section" in query and counts != len(shown["rows"]):
                    found.append(f"{query} counts {counts} in sections")
        return found

    def settle(self):
        self.proxy.bytes = None
        last = []

        def is_settled():
            last[:] = self.differences()
            return not last
        try:
            until(is_settled, "pages that show what is there")
        except AssertionError:
            raise AssertionError(f"{len(last)} differences: {last[:5]}") from None
        until(lambda: len(self.server.streams()) == 1, "one stream")

    def check(self):
        """Each observation: its first state, and from there every commit of its value once, in order."""
        for tab, n in self.tabs.items():
            for ref, heard in self.at(tab, "return page.state()")["observations"].items():
                # What was heard of a store that is no more has been checked before it was wiped.
                wipes = [place for place, each in enumerate(heard) if each.get("reset") == "epoch"]
                heard = heard[max(wipes, default=0):]
                context = f"tab {n}, {ref}: {heard[-12:]}"
                expected = None
                for each in heard:
                    assert not each.get("problem"), context
                    if each.get("reset"):
                        expected = None
                        continue
                    if each.get("initial"):
                        assert expected is None, "a second first state; " + context
                        expected = [value for revision, value in self.values(ref) if revision > each["revision"]]
                        continue
                    # An own write is shown ahead also while the state after a reset is on its way.
                    if expected is None and each.get("pending"):
                        continue
                    assert expected is not None, "a change before the first state; " + context
                    isNext = expected and expected[0] == each["value"]
                    assert isNext, f"missed or doubled, expected {expected[:3]}; " + context
                    expected.pop(0)
                assert expected == [], f"missed {expected}; " + context

    def values(self, ref):
        return [(revision, each["value"]) for revision, operations in self.commits for each in operations
                if each.get("object") == ref and each.get("keyPath") == "value"]

    def run(self):
        for _ in range(3):
            self.open()
        self.settle()
        stream = self.server.streams()[0]
        assert stream["count"] == 504, stream
        acts = [self.write] * 12 + [self.rebind, self.hide, self.set, self.set]
        rare = [self.proxy.cut, self.proxy.cut, self.kill, self.change_tabs, self.freeze_one]
        for step in range(self.steps):
            for _ in range(4):
                self.random.choice(acts)()
            if step % 12 == 11:
                self.random.choice(rare)()
            if step % 20 == 5:
                # For a while each connection ends somewhere, also inside a commit.
                self.proxy.bytes = self.random.choice([None, 3000, 100_000])
                self.proxy.cut()
            if step == self.steps * 3 // 4:
                self.wipe()
        self.settle()
        self.check()
        # What ends leaves nothing.
        for tab in list(self.tabs):
            self.driver.switch_to.window(tab)
            self.driver.execute_script("page.keyway.close()")
        until(lambda: not self.server.streams(), "no stream")

    def close(self):
        try:
            self.driver.quit()
        finally:
            self.server.close()


def main():
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 60
    print(f"seed {seed}, {steps} steps", flush=True)
    run = Run(sys.argv[1], seed, steps)
    try:
        run.run()
    finally:
        run.close()
    print("all is shown as it is", flush=True)


if __name__ == "__main__":
    main()

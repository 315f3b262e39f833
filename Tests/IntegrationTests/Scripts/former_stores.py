"""Makes a set of fixtures with a program: the stores of a leader, of its follower and of a peer, each with what the
program served of it. FormerStoreTests opens them with the program of today. A change of a format adds a set.

    python3 former_stores.py KEYWAY ../Fixtures/NAME   (the folder has schema.yaml)
"""

import glob, http.client, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, time

program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
schema = os.path.join(folder, "schema.yaml")
scratch = tempfile.mkdtemp()
os.chmod(scratch, 0o777)
READS = ["/v1/objects/Team", "/v1/objects/Person", "/v1/objects/Team/1/members", "/v1/objects/Person/2/teams.@count"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    def __init__(self, *flags):
        self.port = free_port()
        self.process = subprocess.Popen(
            [program, "serve", "--port", str(self.port), "--schema", schema, *flags], stderr=subprocess.DEVNULL)
        while self.send("GET", "/readyz")[0] != 200:
            time.sleep(0.05)

    def send(self, method, path, body=None, headers={}):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            if body is not None:
                body, headers = json.dumps(body), {"Content-Type": "application/json", **headers}
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except ConnectionError:
            return 0, ""

    def must(self, *arguments):
        status, body = self.send(*arguments)
        assert 200 <= status < 300, (arguments, status, body)
        return body

    def cursor(self):
        status = json.loads(self.must("GET", "/v1/status"))
        return f'{status["epoch"]}-{status["revision"]}'

    def events(self, path, cursor):
        """Everything that a stream of an object gets that goes on from a cursor, up to the present revision."""
        end, lines = self.cursor(), []
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(
                f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{self.port}\r\nAccept: text/event-stream\r\n"
                f"Last-Event-ID: {cursor}\r\n\r\n".encode())
            for line in connection.makefile(encoding="utf-8", newline="\n"):
                lines.append(line.rstrip("\n"))
                if lines[-1] == "" and f"id: {end}" in lines:
                    break
        return [line for line in lines if re.match("id: |event: |data: ", line)]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait() == 0


def write(server):
    """Writes of every kind; gives the cursor of the middle."""
    for number, name in enumerate(["Ada", "Grace", "Edsger", "Barbara"], 1):
        server.must("PUT", f"/v1/objects/Person/{number}", {"name": name, "notes": {"n": [number, 0.1, None]}})
    for number, name in enumerate(["Compilers", "Proofs"], 1):
        server.must("PUT", f"/v1/objects/Team/{number}", {"name": name, "budget": number * 1e15})
        server.must("POST", f"/v1/objects/Team/{number}/members", "Person/2")
    server.must("POST", "/v1/objects/Team/1/members", "Person/1")
    middle = server.cursor()
    server.must("PUT", "/v1/objects/Team/1/lead", "Person/1", {"Idempotency-Key": '"lead"'})
    server.must("PUT", "/v1/objects/Team/1/name", "Compilers \u2028 and \U0001f600")
    server.must("PUT", "/v1/objects/Person/3/born", "1930-05-11")
    server.must("DELETE", "/v1/objects/Person/4")
    server.must("PUT", "/v1/objects/Team/1/budget", 12.5)
    return middle


def record(name, server, middle):
    server_stand = {
        "objects": {path: server.must("GET", path) for path in READS}, "since": middle, "until": server.cursor(),
        "events": server.events("/v1/objects/Team/1", middle)}
    with open(os.path.join(folder, name + ".json"), "w") as file:
        json.dump(server_stand, file, indent=1)
        file.write("\n")


def keep(name):
    """The files of a store that is not open."""
    target = os.path.join(folder, name)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(os.path.join(scratch, name), target, ignore=shutil.ignore_patterns("lock", "*-shm"))


def nodes():
    leader = Server("--store", scratch + "/leader", "--set", "nodes.followers=true", "--set", "snapshot.revisions=10")
    follower = Server("--store", scratch + "/follower", "--follow", f"http://127.0.0.1:{leader.port}")
    middle = write(leader)
    while follower.cursor() != leader.cursor():
        time.sleep(0.05)
    for name, server in (("leader", leader), ("follower", follower)):
        record(name, server, middle)
    follower.stop()
    # Its log is read when it is opened.
    leader.process.kill()
    leader.process.wait()
    for name in ("leader", "follower"):
        keep(name)


def peer():
    programs, port = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1], free_port()
    prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    database, address = scratch + "/postgres", ["-h", "127.0.0.1", "-p", str(port), "-U", "keyway"]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
    run = lambda *command: subprocess.run([*prefix, *command], check=True, stdout=subprocess.DEVNULL)
    run(programs + "/initdb", "-D", database, "-A", "trust", "-U", "keyway", "-E", "UTF8", "--locale=C")
    run(programs + "/pg_ctl", "-D", database, "-w", "-l", scratch + "/log", "-o", options, "start")
    try:
        run(programs + "/createdb", *address, "keyway")
        url = f"postgres://keyway@127.0.0.1:{port}/keyway"
        server = Server("--journal", url, "--store", scratch + "/peer")
        record("peer", server, write(server))
        server.stop()
        dump = [programs + "/pg_dump", *address, "--no-owner", "--no-privileges", "--inserts", "keyway"]
        text = subprocess.run(dump, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
        with open(os.path.join(folder, "peer.sql"), "w") as file:
            # Commands of psql, which only some versions know.
            file.writelines(line for line in text.splitlines(True) if not line.startswith("\\"))
    finally:
        run(programs + "/pg_ctl", "-D", database, "-m", "fast", "stop")


try:
    nodes()
    peer()
finally:
    shutil.rmtree(scratch, ignore_errors=True)

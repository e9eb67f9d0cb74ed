"""The server: its page, its answers, and everything that it refuses."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from grasp.__main__ import main
from grasp.errors import UsageError
from grasp.lens.guard import LONGEST_BODY
from grasp.lens.server import Lens, page_files
from grasp.lens.view import View


@pytest.fixture(scope="module")
def lens(collect_run):
    serving = Lens(View(collect_run))
    thread = threading.Thread(target=serving.run)
    thread.start()
    while not serving.server.started:
        time.sleep(0.02)
    yield serving
    serving.stop()
    thread.join(20)
    assert not thread.is_alive()


def answer(lens, method, path, body=None, **headers):
    """Status, headers and body of one request, sent exactly as given."""
    connection = http.client.HTTPConnection("127.0.0.1", lens.port, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    host = given.pop("Host", f"127.0.0.1:{lens.port}")
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    if host is not None:
        connection.putheader("Host", host)
    for name, value in given.items():
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    with contextlib.closing(connection):
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def page(lens, rest=""):
    return f"/{lens.token}/{rest}"


def asked(lens, path, request):
    body = json.dumps(request).encode()
    status, _, content = answer(
        lens, "POST", page(lens, path), body, Content_Type="application/json"
    )
    return status, content


def test_the_page_and_its_answers(lens):
    status, headers, content = answer(lens, "GET", page(lens))
    assert status == 200
    assert b"GrASP Lens" in content
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    for name in page_files():
        assert answer(lens, "GET", page(lens, name))[0] == 200
    same = {"Origin": f"http://127.0.0.1:{lens.port}", "Sec_Fetch_Site": "same-origin"}
    status, _, content = answer(lens, "GET", page(lens, "api/run"), **same)
    assert (status, json.loads(content)["heads"]) == (200, 3)
    status, content = asked(lens, "api/moment", {"spec": {"start": 0}, "at": 0})
    assert (status, json.loads(content)["index"]) == (200, 0)
    assert answer(lens, "GET", page(lens, "api/training"))[0] == 200
    localhost = answer(lens, "GET", page(lens), Host=f"localhost:{lens.port}")
    assert localhost[0] == 200


def test_the_page_asks_nobody_else():
    """No address of another machine stands in any file; the icon's namespace is a name."""
    for name, content in page_files().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(https?:)?//\w+\.\w", text), name
        assert "import(" not in text
        assert "eval(" not in text


def test_every_import_of_the_page_is_a_file_of_it():
    files = page_files()
    for name, content in files.items():
        if name.endswith(".js"):
            for wanted in re.findall(r'from "\./([^"]+)"', content.decode()):
                assert wanted in files, f"{name} imports {wanted}"
    assert {"app.js", "style.css", "icon.svg"} <= set(
        re.findall(r'(?:src|href)="([^"]+)"', files["index.html"].decode())
    )


ATTACKS = {
    # without the token, or with another
    "no token": lambda lens: ("GET", "/", {}),
    "no token, api": lambda lens: ("GET", "/api/run", {}),
    "no token, file": lambda lens: ("GET", "/app.js", {}),
    "wrong token": lambda lens: ("GET", "/" + "x" * len(lens.token) + "/", {}),
    "token cut short": lambda lens: ("GET", f"/{lens.token[:-1]}/", {}),
    "token and more": lambda lens: ("GET", f"/{lens.token}x/", {}),
    "token without slash": lambda lens: ("GET", f"/{lens.token}", {}),
    "token in other case": lambda lens: ("GET", f"/{lens.token.swapcase()}/", {}),
    "token as a parameter": lambda lens: ("GET", f"/?token={lens.token}", {}),
    "token in a header": lambda lens: ("GET", "/api/run", {"Authorization": lens.token}),
    "empty token": lambda lens: ("GET", "//api/run", {}),
    "no token, post": lambda lens: ("POST", "/api/moment", {"Content_Type": "application/json"}),
    # with another host
    "foreign host": lambda lens: ("GET", page(lens), {"Host": "evil.example"}),
    "foreign host, our port": lambda lens: ("GET", page(lens), {"Host": f"evil.ex:{lens.port}"}),
    "a name bound to loopback": lambda lens: ("GET", page(lens), {"Host": "127.0.0.1.nip.ex"}),
    "other port": lambda lens: ("GET", page(lens), {"Host": "127.0.0.1:1"}),
    "no port": lambda lens: ("GET", page(lens), {"Host": "127.0.0.1"}),
    "user before the host": lambda lens: ("GET", page(lens), {"Host": f"a@127.0.0.1:{lens.port}"}),
    "all interfaces": lambda lens: ("GET", page(lens), {"Host": f"0.0.0.0:{lens.port}"}),
    # a path that climbs
    "climbs": lambda lens: ("GET", page(lens, "../../../../etc/passwd"), {}),
    "climbs, escaped": lambda lens: ("GET", page(lens, "%2e%2e/%2e%2e/etc/passwd"), {}),
    "climbs, escaped slash": lambda lens: ("GET", page(lens, "..%2f..%2fserver.py"), {}),
    "climbs, escaped twice": lambda lens: ("GET", page(lens, "%252e%252e/server.py"), {}),
    "climbs, backslash": lambda lens: ("GET", page(lens, "..\\server.py"), {}),
    "absolute": lambda lens: ("GET", page(lens, "/etc/passwd"), {}),
    "source code": lambda lens: ("GET", page(lens, "server.py"), {}),
    # from another origin
    "other origin": lambda lens: ("GET", page(lens, "api/run"), {"Origin": "http://evil.example"}),
    "null origin": lambda lens: ("GET", page(lens, "api/run"), {"Origin": "null"}),
    "other port's origin": lambda lens: ("GET", page(lens), {"Origin": "http://127.0.0.1:1"}),
    "https origin": lambda lens: ("GET", page(lens), {"Origin": f"https://127.0.0.1:{lens.port}"}),
    "cross-site fetch": lambda lens: ("GET", page(lens), {"Sec_Fetch_Site": "cross-site"}),
    "same site, other port": lambda lens: ("GET", page(lens), {"Sec_Fetch_Site": "same-site"}),
    "form post": lambda lens: ("POST", page(lens, "api/moment"), {"Content_Type": "text/plain"}),
    "delete": lambda lens: ("DELETE", page(lens, "api/moment"), {}),
    "read by post": lambda lens: ("GET", page(lens, "api/moment"), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(lens, name):
    method, path, headers = ATTACKS[name](lens)
    status, _, content = answer(lens, method, path, b"{}" if method == "POST" else None, **headers)
    assert 400 <= status < 500, (status, content)
    assert b"heads" not in content
    assert b"root:" not in content
    assert lens.token.encode() not in content


def test_there_are_thirty_attacks_or_more():
    assert len(ATTACKS) >= 30


def test_two_hosts_or_none_are_refused(lens):
    target = f"GET {page(lens)} HTTP/1.1\r\n"
    ours = f"Host: 127.0.0.1:{lens.port}\r\n"
    for hosts in ("", ours + "Host: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", lens.port), timeout=20) as raw:
            raw.sendall(f"{target}{hosts}Connection: close\r\n\r\n".encode())
            assert re.match(rb"HTTP/1.1 4\d\d", raw.recv(100))


def test_a_websocket_is_not_spoken(lens):
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
    key = {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert answer(lens, "GET", page(lens, "api/moment"), **upgrade, **key)[0] != 101


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 50_000, 400),
        (b" " * (LONGEST_BODY + 1), 413),
        (b"[]", 422),
        (b'{"spec": 3}', 422),
        (b'{"spec": {"start": 1e999}}', 422),
        (b'{"spec": {"scene": {"agent": [NaN, 0]}}}', 422),
    ],
)
def test_wrong_bodies_get_a_sentence(lens, body, status):
    found, headers, content = answer(
        lens, "POST", page(lens, "api/moment"), body, Content_Type="application/json"
    )
    assert found == status
    assert headers["content-type"].startswith("text/plain")
    assert b"Traceback" not in content
    assert len(content) > 10


def test_an_environment_that_fails_is_told_and_the_lens_goes_on(lens, monkeypatch):
    def broken(asked):
        raise ZeroDivisionError("of the environment")

    with monkeypatch.context() as patch:
        patch.setattr("grasp.lens.view.outlook", lambda *given: broken(given))
        status, content = asked(lens, "api/moment", {"spec": {"start": 7}, "at": 0})
        assert (status, content) == (500, b"ZeroDivisionError: of the environment")
    assert asked(lens, "api/moment", {"spec": {"start": 7}, "at": 0})[0] == 200


def test_nothing_listens_outside_loopback(lens):
    assert lens.socket.getsockname()[0] == "127.0.0.1"
    table = Path("/proc/net/tcp")
    if table.exists():
        rows = [line.split() for line in table.read_text().splitlines()[1:]]
        listening = [row[1] for row in rows if row[3] == "0A"]
        ours = [address for address in listening if int(address.split(":")[1], 16) == lens.port]
        assert ours == [f"0100007F:{lens.port:04X}"]


def test_tokens_are_never_the_same(lens, collect_run):
    other = Lens(View(collect_run))
    other.socket.close()
    assert other.token != lens.token
    assert len(lens.token) >= 32


def test_a_port_in_use_is_refused_in_a_sentence(lens, collect_run):
    with pytest.raises(UsageError, match="cannot be used"):
        Lens(View(collect_run), lens.port)
    with pytest.raises(UsageError, match="from 0"):
        Lens(View(collect_run), 70_000)


def test_the_command_prints_an_address_and_ends_on_ctrl_c(collect_run):
    command = [sys.executable, "-m", "grasp", "lens", str(collect_run.path), "--no-browser"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        address = re.search(r"http://127\.0\.0\.1:(\d+)(/\S+/)", process.stdout.readline())
        connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=30)
        with contextlib.closing(connection):
            connection.request("GET", address[2])
            assert connection.getresponse().status == 200
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


def test_without_the_extra_the_command_says_what_to_install(collect_run, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["lens", str(collect_run.path)]) == 2
    error = capsys.readouterr().err
    assert "starlette and uvicorn" in error
    assert "pip install 'grasp-rl[lens]'" in error


def test_no_run_is_refused(tmp_path, capsys):
    assert main(["lens", str(tmp_path / "nowhere")]) == 2
    assert "no run directory" in capsys.readouterr().err

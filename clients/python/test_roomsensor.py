"""Tests the client against a running service, directly and through a proxy that fails.

`go tool task samples` runs them.

Set ROOMSENSOR_URL, ROOMSENSOR_API_KEY (read_write), INGEST_URL and INGEST_KEY. The team has devices with six days of
readings, and nothing else writes to it.
"""

import csv
import http.client
import http.server
import logging
import os
import resource
import sys
import tempfile
import threading
import unittest
from datetime import date, datetime, timedelta, timezone
from unittest import mock
from urllib.parse import parse_qs, urlsplit

import roomsensor

NOW = datetime.now(timezone.utc).replace(microsecond=0)
# A time in which nothing changes.
WINDOW = {"from_": NOW - timedelta(days=5), "to": NOW - timedelta(days=1)}


def html(status, **headers):
    """Answers like a proxy."""
    headers["Content-Type"] = "text/html"
    return lambda handler: handler.answer(status, b"<html><h1>Bad</h1></html>", headers)


def foreign(body):
    """Answers like a proxy with JSON of its own."""
    return lambda handler: handler.answer(200, body, {"Content-Type": "application/json"})


def refuse(status, code, message, **headers):
    """Answers like the service."""
    body = b'{"error":{"code":"%s","message":"%s","param":null}}' % (code.encode(), message.encode())
    return lambda handler: handler.answer(status, body, {"Content-Type": "application/json", **headers})


def cut(handler):
    """Answers nothing."""


def delay(handler):
    """Does not answer in time."""
    handler.server.slow.wait(10)


def lose(handler):
    """Forwards the request and loses the response."""
    handler.forward()


def truncate(handler, zipped=False):
    """Loses the end of the response."""
    if not zipped:
        del handler.headers["Accept-Encoding"]
    status, headers, body = handler.forward()
    handler.answer(status, body, headers, keep=len(body) // 2)


def truncate_zipped(handler):
    truncate(handler, zipped=True)


class Handler(http.server.BaseHTTPRequestHandler):
    def handle_one_request(self):
        super().handle_one_request()
        self.close_connection = True

    def do(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append(self.path)
        fault = self.server.faults.pop(0) if self.server.faults else Handler.pass_on
        fault(self)

    do_GET = do_PATCH = do_POST = do

    def forward(self):
        connection = http.client.HTTPConnection(urlsplit(self.server.target).netloc)
        connection.request(self.command, self.path, self.body, dict(self.headers))
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response.status, {n: v for n, v in response.getheaders() if n != "Transfer-Encoding"}, body

    def pass_on(self):
        status, headers, body = self.forward()
        self.answer(status, body, headers)

    def answer(self, status, body, headers, keep=None):
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[:keep])

    def log_message(self, *_):
        pass


class ClientTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        logging.getLogger("roomsensor").setLevel(logging.ERROR)
        self.client, self.receiver = roomsensor.Client(), roomsensor.Receiver()
        self.devices = list(self.client.devices())
        # Some devices of a team never reported.
        self.device = max(self.client.coverage(**WINDOW), key=lambda d: d["present"])["device_id"]
        self.found = self.client.device(self.device)
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.path = os.path.join(self.directory.name, "readings.csv")
        sleep = mock.patch("roomsensor.time.sleep")
        self.sleep = sleep.start()
        self.addCleanup(sleep.stop)

    def proxy(self, target, *faults):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.target, server.faults, server.requests = os.environ[target], list(faults), []
        server.slow = threading.Event()
        threading.Thread(target=server.serve_forever).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.addCleanup(server.slow.set)
        server.url = "http://127.0.0.1:%d" % server.server_port
        return server

    def through(self, *faults, **options):
        server = self.proxy("ROOMSENSOR_URL", *faults)
        return server, roomsensor.Client(server.url, **options)

    def pauses(self):
        return [call.args[0] for call in self.sleep.call_args_list]

    def read(self):
        with open(self.path, "rb") as file:
            return file.read()

    def test_lists(self):
        self.assertIn("team", self.client.team())
        ids = [d["device_id"] for d in self.devices]
        self.assertEqual([d["device_id"] for d in self.client.devices(limit=1)], ids)
        self.assertEqual([d["device_id"] for d in self.client.current_devices()], ids)
        self.assertEqual([d["device_id"] for d in self.client.coverage(last=timedelta(hours=12))], ids)
        self.assertEqual(self.client.device(self.device)["device_id"], self.device)
        self.assertEqual(list(self.client.devices(metadata={"no such": "tag"})), [])
        readings = list(self.client.readings(self.device, **WINDOW, limit=500))
        self.assertGreater(len(readings), 1000)
        self.assertEqual(len(readings), self.client.export(self.path, devices=[self.device], **WINDOW))
        days = list(self.client.aggregates(self.device, "1d", time_zone="Europe/Berlin", metrics=["lux"], **WINDOW))
        self.assertEqual(sum(d["lux"]["count"] for d in days), sum(r["lux"] is not None for r in readings))
        self.assertEqual(sum(g["missing"] for g in self.client.gaps(self.device, **WINDOW)),
                         sum(d["expected"] - d["present"] for d in days))
        self.assertTrue(any("label" in a for d in ids for a in self.client.assignments(d)))
        held = list(self.client.assignments(last="30d", limit=2))
        self.assertEqual(sorted(a["assignment_id"] for a in held if a["ended_at"] is None),
                         sorted(a["assignment_id"] for a in self.client.assignments()))
        nights = list(self.client.nights(limit=1))
        self.assertTrue(nights)
        self.assertEqual(nights, list(self.client.nights(night=nights[0]["night"])))
        frame = self.client.to_pandas("nights")
        self.assertEqual(list(frame["assignment_id"]), [n["assignment_id"] for n in nights])
        self.assertEqual(int(frame["co2_ppm_minutes_bad"].sum()), sum(n["co2_ppm"]["minutes_bad"] for n in nights))

    def test_errors(self):
        with self.assertRaises(roomsensor.Error) as refused:
            list(self.client.devices(limit=0))
        e = refused.exception
        self.assertEqual((e.status, e.code, e.param), (400, "validation_failed", "limit"))
        self.assertEqual(str(e), f"validation_failed: {e.message} ({e.request_id})")
        self.assertTrue(e.doc_url.endswith("/docs/errors/validation_failed"))
        for text in "2026-01-31T08:00:00", datetime(2026, 1, 31):
            with self.assertRaisesRegex(ValueError, "no time zone"):
                self.client.export(self.path, from_=text)
        for url in "127.0.0.1:8080", "http://", "":
            with self.assertRaisesRegex(ValueError, "https://host"):
                with mock.patch.dict(os.environ, {"ROOMSENSOR_URL": ""}):
                    roomsensor.Client(url, "rsk_x")

    def test_retries(self):
        """Every fault of a proxy that is worth a retry, before and while a response arrives."""
        busy = refuse(429, "rate_limit_exceeded", "Wait.", **{"Retry-After": "7"})
        for faults in [(busy, html(502), html(503), html(504)), (cut, delay, truncate, html(500))]:
            self.sleep.reset_mock()
            server, client = self.through(*faults, timeout=0.5)
            self.assertEqual(client.team(), self.client.team())
            self.assertEqual(len(server.requests), 5)
            self.assertTrue(all(0 < pause < 10 for pause in self.pauses()), self.pauses())
            if faults[0] is busy:
                self.assertGreaterEqual(self.pauses()[0], 7)

    def test_no_retries(self):
        """What waiting does not repair, and the end of the attempts: one sentence that says what to do."""
        late = {"Retry-After": (NOW + timedelta(hours=2)).strftime("%a, %d %b %Y %H:%M:%S GMT")}
        for count, fault, text in [
            (5, html(502), "answered 502 Bad Gateway with something that is not from roomsensor.* Try again later"),
            (5, cut, "cannot be reached, .* Check the address and the network"),
            (1, html(503, **late), "answered 503"),
            (1, html(404), "answered 404 .* Check the address"),
            (1, html(200), "answered 200 .* Check the address"),
            (1, html(301, Location="https://new.example"), "redirects: https://new.example"),
            (1, refuse(404, "not_found", "Nothing."), "not_found: Nothing."),
        ]:
            server, client = self.through(*[fault] * 6)
            with self.assertRaisesRegex(roomsensor.Error, text):
                client.team()
            self.assertEqual(len(server.requests), count, text)

    def test_foreign(self):
        """JSON that is not from the service, such as that of a proxy, is one error."""
        upload = {"hardware_id": self.found["hardware_id"], "readings": []}
        for body in b'{"status":"ok"}', b"[]", b"null", b'{"data":{},"next_cursor":null,"caught_up":true}':
            server, client = self.through(*[foreign(body)] * 9)
            receiver = roomsensor.Receiver(server.url)
            calls = [
                client.team, lambda: client.device(self.device), lambda: client.update_device(self.device, {}),
                lambda: list(client.devices()), lambda: next(client.changes()), lambda: client.export(self.path),
                client.count_readings, lambda: receiver.upload(upload), lambda: receiver.try_upload(upload),
            ]
            for n, call in enumerate(calls, 1):
                with self.assertRaisesRegex(roomsensor.Error, "answered 200 OK with something that is not from"):
                    call()
                self.assertEqual(len(server.requests), n)
        self.assertEqual(os.listdir(self.directory.name), [])

    def test_disk(self):
        """A file that cannot be written is an error at once, and no failure of the network."""
        size, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        server, client = self.through()
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
        try:
            with self.assertRaisesRegex(roomsensor.Error, "readings.csv cannot be written: File too large"):
                client.export(self.path, **WINDOW)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
        self.assertEqual(len(server.requests), 1)
        self.assertEqual(os.listdir(self.directory.name), [])
        os.mkdir(self.path)
        for path in self.path, os.path.join(self.directory.name, "none", "readings.csv"):
            with self.assertRaisesRegex(roomsensor.Error, "readings.csv cannot be written: "):
                client.export(path, last="1h")
        self.assertEqual(os.listdir(self.directory.name), ["readings.csv"])

    def test_update_device(self):
        """A change whose response is lost runs once."""
        server, client = self.through(lose, html(504))
        self.addCleanup(self.client.update_device, self.device, {"display_name": self.found["display_name"]})
        change = {"display_name": "Büro", "metadata": {"wing": None}}
        self.assertEqual(client.update_device(self.device, change)["display_name"], "Büro")
        self.assertEqual(len(server.requests), 3)
        change, key = {"display_name": None}, f"test {NOW}"
        for name in None, "Saal":
            self.assertIsNone(client.update_device(self.device, change, idempotency_key=key)["display_name"])
            self.assertEqual(self.client.device(self.device)["display_name"], name)
            self.client.update_device(self.device, {"display_name": "Saal"})

    def test_export(self):
        """A file in parts, through faults, has the bytes of one response."""
        rows = self.client.export(self.path, **WINDOW)
        whole = self.read()
        self.assertEqual(whole.count(b"\n"), rows + 1)
        self.assertEqual(self.client.count_readings(**WINDOW), rows)
        readings = list(self.client.export_readings(**WINDOW, include="ingested_at", devices=[self.device]))
        columns = "bucket_at", "co2_ppm", "spl_db", "ingested_at"
        self.assertEqual([[r[c] for c in columns] for r in readings],
                         [[r[c] for c in columns] for r in self.client.readings(self.device, **WINDOW)][::-1])
        fits = (WINDOW["from_"] + timedelta(hours=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        large = refuse(413, "csv_too_large", f"Ask for from=2026-01-01T00:00:00Z&to={fits}.")
        server, client = self.through(large, truncate_zipped, html(502), cut)
        with mock.patch("roomsensor._WIDEST", timedelta(days=4)):
            self.assertEqual(client.export(self.path, **WINDOW), rows)
        self.assertEqual(self.read(), whole)
        windows = {parse_qs(urlsplit(path).query)["from"][0] for path in server.requests}
        self.assertGreater(len(windows), 1)
        server, client = self.through(*[truncate] * 5)
        with self.assertRaisesRegex(roomsensor.Error, "its answer broke off: the export ended early"):
            client.export(self.path, **WINDOW)
        self.assertEqual(self.read(), whole)
        self.assertEqual(os.listdir(self.directory.name), ["readings.csv"])

    def test_export_columns(self):
        """Wide parts with other columns are not joined."""

        def rename(handler):
            self.client.update_device(self.device, {"display_name": "renamed"})
            handler.pass_on()

        self.addCleanup(self.client.update_device, self.device, {"display_name": self.found["display_name"]})
        _, client = self.through(Handler.pass_on, rename)
        with mock.patch("roomsensor._WIDEST", timedelta(days=2)):
            with self.assertRaisesRegex(roomsensor.Error, "columns changed"):
                client.export(self.path, shape="wide", **WINDOW)

    def test_other_exports(self):
        path = os.path.join(self.directory.name, "readings.parquet")
        self.assertEqual(self.client.export(path, **WINDOW), self.client.export(self.path, **WINDOW))
        with open(path, "rb") as file:
            self.assertTrue(file.read().endswith(b"PAR1"))
        rows = self.client.export(self.path, "aggregates", interval="1d", last="3d")
        self.assertEqual(rows, self.read().count(b"\n") - 1)
        with self.assertRaisesRegex(ValueError, "must end in"):
            self.client.export("readings.xlsx", last="1d")
        # None is not sent.
        rows = self.client.export(self.path, to=WINDOW["to"])
        self.assertEqual(self.client.export(self.path, from_=None, last=None, to=WINDOW["to"]), rows)
        with self.assertRaisesRegex(ValueError, "2026-01-31 has no time zone"):
            self.client.export(self.path, from_=date(2026, 1, 31))

    def test_to_pandas(self):
        import pandas

        frame = self.client.to_pandas(time_zone="America/New_York", include="ingested_at", **WINDOW)
        self.client.export(self.path, **WINDOW)
        with open(self.path, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(frame), len(rows))
        for column in "co2_ppm", "spl_db":
            self.assertEqual([None if x is pandas.NA else x for x in frame[column]],
                             [float(r[column]) if r[column] else None for r in rows])
        self.assertEqual({c: str(t) for c, t in frame.dtypes.items()}, {
            "bucket_at": "datetime64[ns, UTC]", "local_time": "datetime64[ns, America/New_York]", "device_id": "string",
            "display_name": "string", "co2_ppm": "Float64", "temp_c": "Float64", "humidity_pct": "Float64",
            "lux": "Float64", "spl_db": "Float64", "valid_mask": "Int64", "ingested_at": "datetime64[ns, UTC]",
        })
        self.assertTrue((frame["local_time"] == frame["bucket_at"]).all())
        days = self.client.to_pandas("aggregates", interval="1d", time_zone="Europe/Berlin", fill=True, **WINDOW)
        self.assertEqual(set(days["local_time"].dt.hour), {0})
        self.assertEqual(days["co2_ppm_count"].sum(), frame["co2_ppm"].count())
        with mock.patch.dict(sys.modules, pandas=None):
            with self.assertRaisesRegex(ImportError, "A data frame needs pandas"):
                self.client.to_pandas(last="2h")
        wide = self.client.to_pandas(shape="wide", last="2h")
        self.assertEqual({str(t) for t in wide.dtypes[1:]}, {"Float64"})

    def test_uploads(self):
        """Uploads are sent until the service has stored them; the feed then has the reading."""
        start = datetime.now(timezone.utc)
        co2 = 1000 + int(start.timestamp()) % 9000  # Another value in each run.
        upload = {"hardware_id": self.found["hardware_id"],
                  "readings": [{"measured_at": start, "co2_ppm": co2, "co2": 1}]}
        report = self.receiver.try_upload(upload)
        self.assertEqual((report["rejects"], report["ignored_fields"]), ([], ["co2"]))
        position = next(self.client.changes()).position
        server = self.proxy("INGEST_URL", *[html(502), html(504), cut, lose, html(503), delay, truncate] * 2)
        receipt = roomsensor.Receiver(server.url, timeout=0.5).upload([upload, {**upload, "readings": []}])
        self.assertEqual((receipt["stored"], len(server.requests)), (2, 15))
        _, client = self.through(html(502), cut, *[html(503)] * 10)
        for page in client.changes(position):
            if any(r["device_id"] == self.device and r["co2_ppm"] == co2 for r in page.readings):
                break
        pages = list(self.client.changes(since=start, devices=[self.device], until_caught_up=True))
        self.assertIn(co2, [r["co2_ppm"] for page in pages for r in page.readings])
        self.assertTrue(pages[-1].caught_up)
        for page in self.client.changes(since=start, include="deletions", until_caught_up=True):
            self.assertEqual(page.deleted, [])
        with self.assertRaisesRegex(roomsensor.Error, "validation_failed"):
            self.receiver.upload({"readings": []})
        self.assertEqual([r["reason"] for r in self.receiver.rejects(hardware_id="dev:1")], [])


if __name__ == "__main__":
    unittest.main()

"""A client of the roomsensor API: the readings of room sensors in Python.

This file is the whole package. It needs Python 3.10 or later and nothing else; only to_pandas needs pandas. Save
http://127.0.0.1:8080/docs/roomsensor.py beside your program, or install the directory clients/python with pip.

    import roomsensor

    client = roomsensor.Client("http://127.0.0.1:8080", "YOUR_API_KEY")
    for device in client.devices(metadata={"site": "north"}):
        print(device["device_id"], device["display_name"])
    client.export("year.csv", last="365d")
    frame = client.to_pandas(last="30d", time_zone="Europe/Berlin")

Objects of the API are dictionaries with the names of its reference, http://127.0.0.1:8080/docs/reference: a value that
is null there is None here. So are the parameters of methods: a method sends the keyword arguments that it does not name
itself, and the service refuses unknown ones. Write `from_` for `from`. A value may also be

  - a datetime with a time zone, or a timedelta of whole minutes (`last=timedelta(days=7)`),
  - a list, for parameters that are separated by commas (`metrics=["co2_ppm", "temp_c"]`),
  - a dictionary for tags (`metadata={"floor": "2"}`).

Lists are iterators, which request the next page when they need it. Every request is sent again after a broken
connection, a timeout, and the statuses 429, 500, 502, 503 and 504. The logger "roomsensor" warns before each pause.
What cannot be repaired by waiting is an Error, whose text says what to do.
"""

from __future__ import annotations

import contextlib
import csv
import email.utils
import gzip
import http.client
import itertools
import json
import logging
import os
import random
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    import pandas

__all__ = ["Changes", "Client", "Error", "Receiver"]
__version__ = "1.0.0"

Item = dict[str, Any]
T = TypeVar("T")

_log = logging.getLogger("roomsensor")


class Error(Exception):
    """A request that failed. Its text has the code, the message and the request id."""

    message: str  # says what to do; its wording may change
    status: int = 0  # of HTTP; 0 without a response
    code: str = ""  # stable, such as "device_not_found"; empty if the response is not from roomsensor
    param: str = ""  # the parameter, header or field that was refused
    request_id: str = ""  # to quote to the operator of the service
    doc_url: str = ""  # page about the code
    retry_after: float = 0  # seconds that the service asks to wait
    transient: bool = False  # whether the same request may succeed later

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        vars(self).update(fields)

    def __str__(self) -> str:
        code = f"{self.code}: " if self.code else ""
        return code + self.message + (f" ({self.request_id})" if self.request_id else "")


class Changes(NamedTuple):
    """A page of the change feed."""

    readings: list[Item]  # inserted or changed; may be empty
    position: str  # where the feed continues after these readings
    caught_up: bool  # False if more changes are visible already
    deleted: list[Item]  # with include="deletions": remove these ranges from a copy before you write the readings


class _Service:
    """Sends requests to one address with one key."""

    def __init__(self, url: str, key: str, version: str, attempts: int | None, max_wait: float, timeout: float) -> None:
        url = url.strip().rstrip("/").removesuffix("/v1")
        parts = urllib.parse.urlsplit(url)
        # A port that is not a number is a ValueError too: an upload to it would be repeated without end.
        if parts.scheme not in ("http", "https") or not re.fullmatch(r"[^\s@]+", parts.netloc) or parts.port == 0 \
                or parts.query or parts.fragment:
            raise ValueError(f"The address {url!r} is not of the form https://host.")
        if not key.strip():
            raise ValueError("The key is empty.")
        self._url, self._key = url + version, key.strip()
        self._attempts, self._max_wait, self._timeout = attempts, max_wait, timeout
        self._opener = urllib.request.build_opener(_NoRedirect)

    def _call(
        self, read: Callable[[Any], T], method: str, path: str, params: Mapping[str, Any], *, body: bytes | None = None,
        headers: Mapping[str, str] | None = None, wait: float = 0, patient: bool = False, max_wait: float = 0,
    ) -> T:
        """Sends a request until read has read its response, or its attempts are exhausted, unless it is patient."""
        url = self._url + path + (f"?{query}" if (query := _query(params)) else "")
        attempts = None if patient else self._attempts
        for n in itertools.count(1):
            request = urllib.request.Request(url, body, method=method, headers={
                "Authorization": f"Bearer {self._key}", "User-Agent": f"roomsensor-python/{__version__}",
                "Accept-Encoding": "gzip", **(headers or {}),
            })
            try:
                return self._send(request, read, self._timeout + wait)
            except Error as error:
                # Clients that failed together should not come back together.
                pause = error.retry_after * random.uniform(1, 1.1) or 2 ** min(n - 2, 4) * random.uniform(0.5, 1)
                too_long = error.retry_after > (max_wait or self._max_wait)
                if not error.transient or attempts and (n >= attempts or too_long):
                    raise
                _log.warning("%s Trying again in %.0f s.", error, pause)
            time.sleep(min(pause, 1.1 * (max_wait or self._max_wait)))  # A proxy may ask for days.
        raise AssertionError  # The loop has no end.

    def _send(self, request: urllib.request.Request, read: Callable[[Any], T], timeout: float) -> T:
        """Sends a request once."""
        try:
            with self._opener.open(request, timeout=timeout) as response:
                if response.headers.get_content_type() == "text/html":
                    raise _foreign(self._url, response)
                return read(response)
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise _refusal(self._url, refusal) from None
        except _BROKEN as problem:
            raise _unreachable(self._url, problem) from problem

    def _json(self, method: str, path: str, has: str, params: Mapping[str, Any] | None = None, **options: Any) -> Item:
        """Returns the object in a response. What does not have the members `has` is not from roomsensor."""

        def read(response: Any) -> Item:
            try:
                answer = dict(json.loads(_decoded(response).read()))
            except (ValueError, TypeError):
                answer = {}
            if not set(has.split()) <= answer.keys() or not isinstance(answer.get("data", []), list):
                raise _foreign(self._url, response)
            return answer

        return self._call(read, method, path, params or {}, **options)

    def _list(self, path: str, params: Mapping[str, Any]) -> Iterator[Item]:
        """Yields the items of all pages. A cursor contains the parameters of the first page."""
        while params is not None:
            page = self._json("GET", path, "data next_cursor", params)
            yield from page["data"]
            params = page["next_cursor"] and {"cursor": page["next_cursor"]}


class Client(_Service):
    """The API with one API key (rsk_...). Safe for use by several threads.

    url and key are those of the environment variables ROOMSENSOR_URL and ROOMSENSOR_API_KEY if they are not given. A
    request is sent at most `attempts` times. A pause that is longer than `max_wait` seconds is an Error at once: a
    program that may wait for its rate limit needs 600. `timeout` is the longest silence of the service in seconds.
    """

    def __init__(
        self, url: str = "", key: str = "", *, attempts: int = 5, max_wait: float = 60, timeout: float = 60
    ) -> None:
        url = url or os.environ.get("ROOMSENSOR_URL", "")
        super().__init__(url, key or os.environ.get("ROOMSENSOR_API_KEY", ""), "/v1", attempts, max_wait, timeout)

    def team(self) -> Item:
        """Returns the team of the key, and what the key allows."""
        return self._json("GET", "/team", "team")

    def devices(self, **params: Any) -> Iterator[Item]:
        """Yields the devices of the team by device_id. Parameters: metadata, limit (the size of a page)."""
        return self._list("/devices", params)

    def current_devices(self, **params: Any) -> Iterator[Item]:
        """Yields the devices with their latest reading and a summary of 24 hours. Parameters: metadata, limit."""
        return self._list("/devices/current", params)

    def device(self, device_id: str | uuid.UUID) -> Item:
        """Returns one device."""
        return self._json("GET", _device(device_id), "device_id")

    def update_device(
        self, device_id: str | uuid.UUID, change: Mapping[str, Any], *, idempotency_key: str | None = None
    ) -> Item:
        """Changes display_name and metadata of a device, and returns the device. None removes a name or a tag.

        The change runs once, however often it is sent within 24 hours with the same idempotency_key. By default each
        call has a new one, which covers its own retries. The key needs the scope read_write.
        """
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key or str(uuid.uuid4())}
        return self._json("PATCH", _device(device_id), "device_id", body=json.dumps(change).encode(), headers=headers)

    def readings(self, device_id: str | uuid.UUID, **params: Any) -> Iterator[Item]:
        """Yields the readings of a device, newest first: by default the last 24 hours, at most 90 days.

        Parameters: from_, to, last, assignment_id, limit.
        """
        return self._list(_device(device_id) + "/readings", params)

    def aggregates(self, device_id: str | uuid.UUID, interval: str, **params: Any) -> Iterator[Item]:
        """Yields minimum, maximum, mean and count of each metric by hour ("1h") or by day ("1d"), newest first.

        Parameters: from_, to, last, assignment_id, time_zone (of days), metrics, limit.
        """
        return self._list(_device(device_id) + "/aggregates", {"interval": interval, **params})

    def coverage(self, **params: Any) -> Iterator[Item]:
        """Yields how many of the expected readings of each device arrived.

        Parameters: from_, to, last, external_ref, metadata.
        """
        return self._list("/coverage", params)

    def gaps(self, device_id: str | uuid.UUID, **params: Any) -> Iterator[Item]:
        """Yields the times without expected readings of a device, newest first. Parameters: from_, to, last, min."""
        return self._list(_device(device_id) + "/gaps", params)

    def assignments(self, device_id: str | uuid.UUID | None = None, **params: Any) -> Iterator[Item]:
        """Yields the assignments of a device, or of the team: by default those that are open now; newest start first.

        Parameters for the team: from_, to, last, external_ref, type, label, metadata.
        """
        return self._list("/assignments" if device_id is None else _device(device_id) + "/assignments", params)

    def nights(self, **params: Any) -> Iterator[Item]:
        """Yields each assignment in each night with its verdict and its metrics; by default of the last night.

        Parameters: night, or from_night and to_night (dates on which nights begin); external_ref, metadata.
        """
        return self._list("/nights", params)

    def changes(
        self, position: str = "", *, since: datetime | str | None = None, until_caught_up: bool = False, **params: Any
    ) -> Iterator[Changes]:
        """Yields the readings that are inserted or changed after a position, page by page, as soon as they are visible.

        Without a position the feed begins at `since`, or now. It ends when it has caught up, or never, and waits for a
        service that does not answer. To keep an exact copy, write the readings of a page (each by device_id and
        bucket_at) and its position in one transaction, and continue with the position that is stored. A position lives
        30 days: store those of empty pages too. With include="deletions", remove the ranges in `deleted` from the copy
        before that. Parameters: devices, external_ref, include, metadata, limit.
        """
        while True:
            sent = time.monotonic()
            wait = 30 if position and not until_caught_up else 0
            start = {"cursor": position, "wait": wait} if position else {"since": since}
            has = "data next_cursor caught_up"
            page = self._json("GET", "/readings/changes", has, {**params, **start}, wait=wait, patient=True)
            position = page["next_cursor"]
            yield Changes(page["data"], position, page["caught_up"], page.get("deleted", []))
            if page["caught_up"]:
                if until_caught_up:
                    return
                # At this rate, a follower uses half of the requests that its key may send.
                time.sleep(max(0.0, sent + 2 - time.monotonic()))

    def export(self, path: str | os.PathLike[str], what: str = "readings", **params: Any) -> int:
        """Writes "readings", "aggregates" or "nights" to a file, .csv or .parquet (readings), and returns its rows.

        Readings as CSV may have any period (from_, to, last): it is requested in parts that the service allows, and the
        file has the bytes of one response. Everything else is one request. The file appears when it is complete; until
        then it is PATH.part.

        Parameters: from_, to, last, assignment_id, external_ref (the readings of an athlete or a room), devices,
        metadata, metrics; for readings as CSV also shape, columns and include; for aggregates interval, time_zone and
        fill; for nights those of nights().
        """
        path = os.fspath(path)
        suffix = os.path.splitext(path)[1]
        if suffix not in (".csv", ".parquet"):
            raise ValueError(f"The name {path!r} must end in .csv or .parquet.")
        with _replacing(path) as file:
            target = _File(file, path, self._url)

            def add(params: Mapping[str, Any]) -> int:
                # All exports together may need the whole window of the rate limit.
                return self._call(target.append, "GET", f"/{what}{suffix}", params, wait=60, max_wait=600)

            if suffix == ".csv" and what == "readings" and (params.get("from_") or params.get("last")):
                return _in_parts(add, params)
            return add(params)

    def export_readings(self, **params: Any) -> Iterator[Item]:
        """Yields the rows of export() as dictionaries with numbers and None, for readings of any period."""
        kinds: dict[str, Callable[[str], Any]] = {"Int64": int, "Float64": float, "string": str}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "export.csv")
            self.export(path, **params)
            with open(path, newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    yield {column: kinds[_dtype(column)](cell) if cell else None for column, cell in row.items()}

    def count_readings(self, **params: Any) -> int:
        """Returns how many rows one request for readings with the parameters of export() would return."""
        return self._call(lambda response: _rows(self._url, response), "GET", "/readings.csv", params, wait=60)

    def to_pandas(self, what: str = "readings", *, time_zone: str | None = None, **params: Any) -> pandas.DataFrame:
        """Returns an export, with the parameters of export(), as a data frame.

        Times are UTC with their time zone. With a time_zone, such as "Europe/Berlin", local_time is bucket_at in it.
        Missing values are NA: metrics are Float64, counts Int64 and texts string. Names are those of the CSV.
        """
        try:
            import pandas
        except ImportError as problem:
            raise ImportError("A data frame needs pandas. Install it, for example: pip install pandas") from problem
        if what == "aggregates":
            params["time_zone"] = time_zone
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "export.csv")
            self.export(path, what, **params)
            columns = pandas.read_csv(path, nrows=0).columns
            frame = pandas.read_csv(path, dtype={c: _dtype(c) for c in columns}, keep_default_na=False, na_values=[""])
        iso = {} if pandas.__version__.startswith("1.") else {"format": "ISO8601"}
        for column in _TIMES.intersection(columns):
            frame[column] = pandas.to_datetime(frame[column], utc=True, **iso)
        if time_zone and "bucket_at" in columns:
            frame = frame.drop(columns="local_time", errors="ignore")
            frame.insert(1, "local_time", frame["bucket_at"].dt.tz_convert(time_zone))
        return frame


class Receiver(_Service):
    """The receiver of uploads with one upload credential (rsi_...), for devices and gateways.

    url and key are those of the environment variables INGEST_URL and INGEST_KEY if they are not given. A request is
    repeated until it is answered, or `attempts` times.
    """

    def __init__(self, url: str = "", key: str = "", *, attempts: int | None = None, timeout: float = 60) -> None:
        url = url or os.environ.get("INGEST_URL", "")
        super().__init__(url, key or os.environ.get("INGEST_KEY", ""), "", attempts, 600, timeout)

    def upload(self, uploads: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Item:
        """Returns after the service has stored one upload or several, of at most 16 MiB together.

        Keep the data until then. To send it again changes nothing. An upload is {"hardware_id": ..., "readings":
        [{"measured_at": ..., "co2_ppm": ...}]}; measured_at may be a datetime. After an Error, keep the data too:
        sending it again does not help until the cause, such as a revoked credential, is removed. Only the codes
        `validation_failed` and `request_too_large` mean that the uploads themselves are wrong. `ignored_fields` of the
        result should be empty.
        """
        return self._json("POST", "/uploads", "stored", body=_lines(uploads))

    def try_upload(self, uploads: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Item:
        """Returns what would become of uploads, in `rejects` and `ignored_fields`, and stores nothing (a dry run)."""
        return self._json("POST", "/uploads", "rejects", {"dry_run": True}, body=_lines(uploads))

    def rejects(self, **params: Any) -> Iterator[Item]:
        """Yields what could not be stored, newest first. Parameters: reason, hardware_id, unit, since, limit."""
        return self._list("/rejects", params)


# Requests and responses.

_TRANSIENT = {429, 500, 502, 503, 504}
# What reading a response raises if the connection or the response breaks.
_BROKEN = (OSError, http.client.HTTPException, EOFError, zlib.error)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: they would send the key to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _decoded(response: Any) -> IO[bytes]:
    """Returns the body of a response without its compression."""
    zipped = response.headers.get("Content-Encoding") == "gzip"
    return cast("IO[bytes]", gzip.GzipFile(fileobj=response) if zipped else response)


def _refusal(url: str, response: urllib.error.HTTPError) -> Error:
    """Returns the error in a response."""
    try:
        fault = json.loads(_decoded(response).read())["error"]
        text, code = str(fault["message"]), str(fault["code"])
    except (*_BROKEN, ValueError, LookupError, TypeError):
        return _foreign(url, response)
    return Error(
        text, status=response.code, code=code, param=fault.get("param") or "", doc_url=fault.get("doc_url") or "",
        request_id=response.headers.get("X-Request-Id", ""), retry_after=_retry_after(response),
        transient=response.code in _TRANSIENT,
    )


def _foreign(url: str, response: Any) -> Error:
    """Returns the error for a response that is not from roomsensor, such as the HTML of a proxy."""
    if response.code in _TRANSIENT:
        remedy = "A proxy in front of the service may not reach it. Try again later, or ask your operator."
    elif 300 <= response.code < 400:
        remedy = f"Use the address to which it redirects: {response.headers.get('Location')}"
    else:
        remedy = "Check the address of the service."
    return Error(
        f"{url} answered {response.code} {response.reason} with something that is not from roomsensor. {remedy}",
        status=response.code, retry_after=_retry_after(response), transient=response.code in _TRANSIENT,
    )


def _unreachable(url: str, problem: BaseException) -> Error:
    """Returns the error for a connection that broke, or that was never made."""
    reason = getattr(problem, "reason", problem)  # URLError wraps it.
    if isinstance(reason, ssl.SSLCertVerificationError):
        remedy = "If your authority is a private one, name the file of its certificate in SSL_CERT_FILE."
        return Error(f"The certificate of {url} is not valid: {reason.verify_message}. {remedy}")
    what = str(reason) or type(reason).__name__
    remedy = "Check the address and the network, or try again later."
    return Error(f"{url} cannot be reached, or its answer broke off: {what}. {remedy}", transient=True)


def _rows(url: str, response: Any) -> int:
    """Returns the number of rows of an export, or raises the error for a response that is not from roomsensor."""
    rows = str(response.headers.get("X-Row-Count", ""))
    if not rows.isdecimal():
        raise _foreign(url, response)
    return int(rows)


def _retry_after(response: Any) -> float:
    """Returns Retry-After in seconds, or 0. Proxies may send a date."""
    value = str(response.headers.get("Retry-After", ""))
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return 0


# Parameters.


def _device(device_id: str | uuid.UUID) -> str:
    return "/devices/" + urllib.parse.quote(str(device_id), safe="")


def _query(params: Mapping[str, Any]) -> str:
    """Returns the query of a request. None means not sent."""
    query = {}
    for name, value in params.items():
        if name == "metadata" and value is not None:
            query.update({f"metadata.{key}": tag for key, tag in value.items()})
        elif value is not None:
            query[name.rstrip("_")] = _text(value)
    return urllib.parse.urlencode(query)


def _text(value: Any) -> str:
    """Returns a value as the service reads it. An empty list is sent, and refused: it must not mean all."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return _utc(value).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        if value % timedelta(minutes=1):
            raise ValueError(f"{value} is not a number of whole minutes.")
        return f"{value // timedelta(minutes=1)}m"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ",".join(map(_text, value))
    return str(value)


def _utc(value: datetime | str) -> datetime:
    """Returns a time in UTC."""
    if isinstance(value, str):
        value = datetime.fromisoformat(value.replace("Z", "+00:00"))
    if getattr(value, "tzinfo", None) is None:  # A date has none either.
        raise ValueError(f"{value} has no time zone. Use datetime.now(timezone.utc) or 2026-01-31T08:00:00Z.")
    return value.astimezone(timezone.utc)


def _lines(uploads: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> bytes:
    """Returns uploads as JSON Lines."""
    each = [uploads] if isinstance(uploads, Mapping) else uploads
    return "\n".join(json.dumps(upload, default=_member, allow_nan=False) for upload in each).encode()


def _member(value: Any) -> Any:
    """Returns a value that JSON has, of a time or of a number of numpy."""
    if isinstance(value, datetime):
        return _text(value)
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{value!r} cannot be sent. Use a number, a text, a list, a dictionary or a datetime.")


# Exports.

_WIDEST = timedelta(days=90)  # of one request
_EARLIEST = datetime(2015, 1, 1, tzinfo=timezone.utc)  # The service stores no reading before it.
_TIMES = {"bucket_at", "bucket_end", "ingested_at", "from", "to"}
_COUNTS = re.compile("valid_mask|expected|present|.*_(count|minutes_warn|minutes_bad)")
_VALUES = re.compile(r"coverage|(.*[._])?(co2_ppm|temp_c|humidity_pct|lux|spl_db)(_min|_max|_mean)?")


def _dtype(column: str) -> str:
    """Returns the type of a column of a data frame."""
    return "Int64" if _COUNTS.fullmatch(column) else "Float64" if _VALUES.fullmatch(column) else "string"


def _in_parts(add: Callable[[Mapping[str, Any]], int], params: Item) -> int:
    """Calls add with successive windows of readings, none with more than the service allows; returns the rows."""
    end = datetime.now(timezone.utc).replace(microsecond=0)
    last, start, to = params.pop("last", None), params.pop("from_", None), params.pop("to", None)
    if last is None:
        start, end = _utc(start), _utc(to or end)
    else:
        found = re.fullmatch(r"(\d+)([mhd])", _text(last))
        if not found:
            raise ValueError(f"last={last!r} is not of the form 90m, 24h or 7d.")
        start = end - timedelta(minutes=int(found[1]) * {"m": 1, "h": 60, "d": 1440}[found[2]])
    start, rows, length = max(start, _EARLIEST), 0, _WIDEST
    if start >= end:
        raise ValueError(f"The window from {start} to {end} is empty.")
    while start < end:
        stop = min(start + length, end)
        try:
            added = add({**params, "from_": start, "to": stop})
        except Error as error:  # Its message names the longest window that fits.
            fits = re.search(r"\bto=([0-9T:.-]+Z)", error.message)
            if error.code != "csv_too_large" or not fits or not start < _utc(fits[1]) < stop:
                raise
            length = _utc(fits[1]) - start
            continue
        start, rows = stop, rows + added
        if added < 100_000:
            length = min(2 * length, _WIDEST)
    return rows


class _File:
    """A file to which the responses of an export are appended, CSV without the header of all but the first."""

    def __init__(self, file: IO[bytes], path: str, url: str) -> None:
        self._file, self._path, self._url, self._header, self._size = file, path, url, b"", 0
        self._csv = path.endswith(".csv")

    def append(self, response: http.client.HTTPResponse) -> int:
        """Appends a whole response, or raises EOFError, after which it can be called again. Returns the rows."""
        expected = _rows(self._url, response)
        with _writing(self._path):
            self._file.seek(self._size)
            self._file.truncate()
        body, rows, quoted, tail = _decoded(response), 0, False, b""
        header = body.readline() if self._csv else b""
        if self._header not in (b"", header):
            raise Error("The columns changed during the export, because a device was added or renamed. Export again.")
        self._write(b"" if self._header else header)
        for chunk in iter(lambda: body.read(1 << 18), b""):
            pieces = chunk.split(b'"')  # A line end between quotes ends no row.
            rows += sum(piece.count(b"\n") for piece in pieces[quoted::2])
            quoted ^= len(pieces) % 2 == 0
            tail = (tail + chunk)[-4:]
            self._write(chunk)
        if self._csv and (rows != expected or header[-1:] != b"\n") or not self._csv and tail != b"PAR1":
            raise EOFError("the export ended early")
        self._header, self._size = header, self._file.tell()
        return expected

    def _write(self, text: bytes) -> None:
        with _writing(self._path):
            self._file.write(text)


@contextlib.contextmanager
def _writing(path: str) -> Iterator[None]:
    """Makes a failure of the disk of this machine an Error, which is not repeated as one of the network is."""
    try:
        yield
    except OSError as problem:
        raise Error(f"{path} cannot be written: {problem.strerror or problem}. Export to another place.") from problem


@contextlib.contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """Opens PATH.part, which becomes PATH if the block succeeds and is removed otherwise."""
    part = path + ".part"
    try:
        with _writing(path):
            with open(part, "wb") as file:
                yield file
            os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(part)
        raise

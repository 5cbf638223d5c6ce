"""A replayed Azure AI Search service on loopback: indexes, uploads, vector queries and filters.

Vector queries: https://learn.microsoft.com/en-us/azure/search/vector-search-how-to-query; which fields an answer has,
and how many rows: https://learn.microsoft.com/en-us/azure/search/search-pagination-page-layout; the request:
https://learn.microsoft.com/en-us/rest/api/searchservice/documents/search-post. All else follows the client's own
models, except the wording of errors.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.stores.replay.http import Refused, Replay, Request, as_written, scores, serving

CONDITION = re.compile(r"search\.in\((\w+), '((?:[^']|'')*)', ','\)|(\w+) eq '([^']*)'")


class AzureReplay(Replay):
    scheme = "https"

    def __init__(self, certificate: Path) -> None:
        super().__init__()
        self.certificate = certificate
        self.indexes: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, Any]] = {}

    def answer(self, request: Request) -> tuple[int, Any]:
        """One index is enough, so that the documents are those of the index whatever its name."""
        if request.path == "/indexes" and request.method == "POST":
            self.indexes[request.body["name"]] = request.body
            return 201, request.body
        if request.path == "/indexes":
            return 200, {"value": [{"name": name} for name in self.indexes]}
        named = re.fullmatch(r"/indexes\('([^']+)'\)(.*)", request.path)
        name, rest = named.groups() if named else ("", "")
        if name not in self.indexes:
            raise Refused(404, {"error": {"code": "", "message": f"No index with the name '{name}' was found."}})
        fields = {field["name"]: field for field in self.indexes[name]["fields"]}
        match rest:
            case "":
                return 200, self.indexes[name]
            case "/docs/search.index":
                return 200, {"value": [self._change(fields, action) for action in request.body["value"]]}
            case _:
                return 200, {"@odata.context": "$metadata#docs(*)", "value": self._search(fields, request.body)}

    def _change(self, fields: dict[str, Any], action: dict[str, Any]) -> dict[str, Any]:
        key = next(action[name] for name, field in fields.items() if field.get("key"))
        kind = action.pop("@search.action")
        before = self.documents.pop(key, {})
        if kind != "delete":
            self.documents[key] = dict.fromkeys(fields) | (before if kind == "merge" else {}) | action
        return {"key": key, "status": True, "errorMessage": None, "statusCode": 200}

    def _search(self, fields: dict[str, Any], body: dict[str, Any]) -> list[dict[str, Any]]:
        shown = [name for name, field in fields.items() if field.get("retrievable") is not False]
        selected = [part for part in (body.get("select") or "").split(",") if part] or shown
        rows = [row for row in self.documents.values() if _passes(row, body.get("filter"))]
        found = [(row, 1.0) for row in rows]
        for nearest in body.get("vectorQueries") or []:
            found = _nearest(rows, nearest, fields[nearest["fields"]])
            if body.get("search") not in (None, "", "*"):
                near = [row for row, _ in found]
                found += [(row, 0.01) for row in rows if row not in near and body["search"] in row["content"]]
        return [
            {"@search.score": score, **{name: _written(row[name]) for name in selected}}
            for row, score in found[: body.get("top") or 50]
        ]


def _nearest(rows: list[dict[str, Any]], query: dict[str, Any], field: dict[str, Any]) -> list[tuple[Any, float]]:
    if len(query["vector"]) != field["dimensions"]:
        message = f"The field '{field['name']}' expects a length of {field['dimensions']}, not {len(query['vector'])}"
        raise Refused(400, {"error": {"code": "InvalidRequestParameter", "message": message}})
    having = [row for row in rows if row[field["name"]] is not None]
    if not having:
        return []
    cosines = scores([row[field["name"]] for row in having], query["vector"], "cosine")
    order = np.argsort(-cosines, kind="stable")[: query["k"]]
    return [(having[i], float(1 / (2 - cosines[i]))) for i in order]


def _written(value: Any) -> Any:
    return as_written(value) if isinstance(value, list) else value


def _passes(row: dict[str, Any], condition: str | None) -> bool:
    """Whether all comparisons of a filter hold, which are joined by "and"."""
    parts = CONDITION.findall(condition or "")
    return all(
        row[listed or field] in (names.replace("''", "'").split(",") if listed else [value])
        for listed, names, field, value in parts
    )


def _certificate(folder: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "replay")])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - day, now + day)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = builder.add_extension(address, False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    path, pem = folder / "replay.pem", serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(pem) + secret)
    return path


@contextmanager
def replaying(folder: Path) -> Iterator[AzureReplay]:
    certificate = _certificate(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    with serving(AzureReplay(certificate), tls) as replay:
        yield replay

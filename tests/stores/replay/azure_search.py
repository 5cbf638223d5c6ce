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

from tests.stores.replay.http import Replay, Request, as_written, scores, serving

COMPARISON = re.compile(
    r"search\.in\((?P<list>\w+), '(?P<names>(?:[^']|'')*)', ','\)"
    r"|(?P<field>\w+) (?P<operator>eq|ne|gt|lt|ge|le) (?P<value>'(?:[^']|'')*'|-?[\d.]+)"
)
OPERATORS = {"eq": "==", "ne": "!=", "gt": ">", "lt": "<", "ge": ">=", "le": "<="}


class Refused(Exception):
    """An error that the service answers with status 400 and this message."""


class AzureReplay(Replay):
    def __init__(self, certificate: Path) -> None:
        super().__init__()
        self.certificate = certificate
        self.indexes: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, dict[str, Any]]] = {}

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def searches(self) -> list[Request]:
        return [request for request in self.requests if request.path.endswith("search.post.search")]

    def answer(self, request: Request) -> tuple[int, Any]:
        try:
            return self._answer(request)
        except Refused as refused:
            return 400, {"error": {"code": "InvalidRequestParameter", "message": str(refused)}}

    def _answer(self, request: Request) -> tuple[int, Any]:
        if request.path == "/indexes" and request.method == "POST":
            self.indexes[request.body["name"]] = request.body
            self.documents[request.body["name"]] = {}
            return 201, request.body
        if request.path == "/indexes":
            return 200, {"value": [{"name": name} for name in self.indexes]}
        named = re.fullmatch(r"/indexes\('([^']+)'\)(.*)", request.path)
        name, rest = named.groups() if named else ("", "")
        if name not in self.indexes:
            return 404, {"error": {"code": "", "message": f"No index with the name '{name}' was found in the service."}}
        match request.method, rest:
            case "GET", "":
                return 200, self.indexes[name]
            case "POST", "/docs/search.index":
                return 200, {"value": [self._change(name, action) for action in request.body["value"]]}
            case "POST", "/docs/search.post.search":
                return 200, self._search(name, request.body)
        return 404, {"error": {"code": "", "message": "not found"}}

    def _change(self, name: str, action: dict[str, Any]) -> dict[str, Any]:
        fields = {field["name"]: field for field in self.indexes[name]["fields"]}
        key = next(field["name"] for field in fields.values() if field.get("key"))
        document = {field: value for field, value in action.items() if field != "@search.action"}
        if action["@search.action"] == "delete":
            self.documents[name].pop(document[key], None)
        else:
            unknown = document.keys() - fields.keys()
            if unknown:
                raise Refused(f"The property '{unknown.pop()}' does not exist on type 'search.documentFields'.")
            if not re.fullmatch(r"[\w=-]+", document[key]):
                raise Refused(f"Invalid document key: '{document[key]}'.")
            before = self.documents[name].get(document[key], {}) if action["@search.action"] == "merge" else {}
            self.documents[name][document[key]] = dict.fromkeys(fields) | before | document
        return {"key": document[key], "status": True, "errorMessage": None, "statusCode": 200}

    def _search(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        fields = {field["name"]: field for field in self.indexes[name]["fields"]}
        shown = {field for field, of in fields.items() if of.get("retrievable") is not False}
        selected = [part for part in (body.get("select") or "").split(",") if part] or [f for f in fields if f in shown]
        for field in selected:
            if field not in shown:
                raise Refused(f"The field '{field}' cannot be selected: it is not retrievable.")
        rows = [row for row in self.documents[name].values() if _passes(row, body.get("filter"), fields)]
        found = [(row, 1.0) for row in rows]
        for nearest in body.get("vectorQueries") or []:
            found = _nearest(rows, nearest, fields[nearest["fields"]])
            if body.get("search") not in (None, "", "*"):
                near = [row for row, _ in found]
                found += [(row, 0.01) for row in rows if row not in near and body["search"] in row["content"]]
        value = [
            {"@search.score": score, **{field: _written(row[field], fields[field]) for field in selected}}
            for row, score in found[: body.get("top") or 50]
        ]
        return {"@odata.context": f"{self.endpoint}/indexes('{name}')/$metadata#docs(*)", "value": value}


def _nearest(rows: list[dict[str, Any]], query: dict[str, Any], field: dict[str, Any]) -> list[tuple[Any, float]]:
    if len(query["vector"]) != field["dimensions"]:
        raise Refused(
            f"The vector field '{field['name']}' expects a length of '{field['dimensions']}', but the vector of the "
            f"query has a length of '{len(query['vector'])}'."
        )
    having = [row for row in rows if row[field["name"]] is not None]
    if not having:
        return []
    cosines = scores([row[field["name"]] for row in having], query["vector"], "cosine")
    order = np.argsort(-cosines, kind="stable")[: query["k"]]
    return [(having[i], float(1 / (2 - cosines[i]))) for i in order]


def _written(value: Any, field: dict[str, Any]) -> Any:
    match field["type"], value:
        case "Collection(Edm.Single)", list():
            return as_written(value)
        case "Collection(Edm.Half)", list():
            return as_written(np.asarray(value, dtype=np.float16))
    return value


def _passes(row: dict[str, Any], wanted: str | None, fields: dict[str, Any]) -> bool:
    if not wanted:
        return True

    def python(found: re.Match[str]) -> str:
        name = found["list"] or found["field"]
        if not fields[name].get("filterable"):
            raise Refused(f"'{name}' is not a filterable field.")
        if found["list"]:
            return f"(row[{name!r}] in {found['names'].replace(chr(39) * 2, chr(39)).split(',')!r})"
        value = found["value"]
        literal = value[1:-1].replace("''", "'") if value.startswith("'") else float(value)
        return f"(row[{name!r}] {OPERATORS[found['operator']]} {literal!r})"

    # The words and, or, not and the parentheses of the filter mean the same in Python.
    return bool(eval(COMPARISON.sub(python, wanted), {"__builtins__": {}}, {"row": row}))


def _certificate(folder: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "replay")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "replay.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
    return path


@contextmanager
def replaying(folder: Path) -> Iterator[AzureReplay]:
    certificate = _certificate(folder)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    replay = AzureReplay(certificate)
    with serving(replay, tls):
        yield replay

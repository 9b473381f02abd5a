"""TLS to the database, the broker and the HTTP services, said in the query of their URLs.

    mysql://consumer@db:3306/books?ssl_ca=/etc/everest/ca.pem
    amqps://consumer@mq:5671/everest?ssl_ca=/etc/everest/ca.pem
    https://airflow.example?ssl_ca=/etc/everest/ca.pem

ssl_ca: who may have signed the server's certificate (absent: the authorities this machine trusts). ssl_cert, ssl_key:
our own certificate, where the server asks for one. Where there is TLS, certificate and host name are verified, unless
ssl_verify=0 says that they are not. A server that offers no TLS is refused.
"""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from ingest_consumer.errors import causes, named

PARAMETERS = ("ssl_ca", "ssl_cert", "ssl_key", "ssl_verify")


@dataclass(frozen=True)
class Tls:
    """Paths of PEM files; ca None: what the machine trusts."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises OSError (ssl.SSLError is one) when a file cannot be read or is no certificate."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.cert is not None:
            context.load_cert_chain(self.cert, self.key)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def split(url: str) -> tuple[str, Tls | None]:
    """The URL without our parameters, and what they say; None when there are none. Raises ValueError with a sentence
    that shows nothing of the URL."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:  # its own message shows a part of the password, where that holds a slash
        raise ValueError("cannot be read; in user and password / @ : # ? are written %2F %40 %3A %23 %3F") from None
    given = parse_qsl(parts.query, keep_blank_values=True)
    ours = {name: value for name, value in given if name in PARAMETERS}
    if not ours:
        return url, None
    if any(not value for value in ours.values()) or ours.get("ssl_verify", "1") not in ("0", "1"):
        raise ValueError("has an empty ssl_ parameter, or an ssl_verify that is neither 0 nor 1")
    if "ssl_key" in ours and "ssl_cert" not in ours:
        raise ValueError("has an ssl_key without its ssl_cert")
    rest = urlencode([(name, value) for name, value in given if name not in PARAMETERS])
    tls = Tls(ours.get("ssl_ca"), ours.get("ssl_cert"), ours.get("ssl_key"), ours.get("ssl_verify") != "0")
    return parts._replace(query=rest).geturl(), tls


def http(url: str) -> tuple[str, ssl.SSLContext | bool]:
    """Address and `verify` of an httpx client: certificates are verified whatever the URL says, but ssl_verify=0.
    Where there is no TLS, nobody is trusted: reading a hundred authorities that are never asked costs a megabyte."""
    plain, tls = split(url)
    if tls is not None:
        return plain, tls.context()
    return plain, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if urlsplit(plain).scheme == "http" else True


def said(error: BaseException, setting: str) -> str:
    """An error of a connection in words for a log; where its cause is TLS, or nobody listens, also what to look at in
    `setting`, which names the URL. Asking again is right all the same: a certificate may be renewed meanwhile."""
    advice = next((text for one in causes(error) if (text := _advice(one, setting))), None)
    return named(error) if advice is None else f"{named(error)}; {advice}"


_EXPIRED, _NOT_YET, _OTHER_HOST, _OTHER_ADDRESS = 10, 9, 62, 64
"""OpenSSL's numbers of why a certificate was not accepted (X509_V_ERR_...)."""

_NO_TLS_THERE = (
    "WRONG_VERSION_NUMBER",
    "RECORD_LAYER_FAILURE",
    "HTTP_REQUEST",
    "UNKNOWN_PROTOCOL",
    "PACKET_LENGTH_TOO_LONG",
)


_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH})


def _advice(error: BaseException, setting: str) -> str | None:
    if isinstance(error, ConnectionRefusedError):
        return f"nobody listens there: is the server of {setting} started, and is that its port?"
    if isinstance(error, socket.gaierror) or (isinstance(error, OSError) and error.errno in _UNREACHABLE):
        return f"no way leads there: is the host in {setting} right?"
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
            return f"{setting} must name the server as its certificate does"
        if error.verify_code in (_EXPIRED, _NOT_YET):
            return f"the certificate of the server of {setting} is not valid at this time"
        return f"ssl_ca of {setting} is not who signed the server's certificate"
    if isinstance(error, ssl.SSLError) and error.reason:
        if error.reason in _NO_TLS_THERE:
            return f"the server of {setting} speaks no TLS at this port"
        if "ALERT" in error.reason:
            return f"the server of {setting} did not accept us: it may want a certificate of ours, ssl_cert and ssl_key"
    return None

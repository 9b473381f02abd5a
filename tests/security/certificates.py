"""An authority and certificates of one test run: a good one, one for another host, one of a stranger."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOUR = datetime.timedelta(hours=1)
TWO_DAYS = datetime.timedelta(days=2)


@dataclass(frozen=True)
class Files:
    """PEM files: who signs, and what a server shows."""

    ca: Path
    cert: Path
    key: Path


class Authority:
    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"{name} authority")
        self._cert = (
            _builder(subject, subject, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(signs=True), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = self._write("ca.pem", self._cert.public_bytes(serialization.Encoding.PEM))

    def certificate(self, *hosts: str, has_expired: bool = False) -> Files:
        """For these host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.IPAddress(ip_address(host)) if host[0].isdigit() else x509.DNSName(host) for host in hosts]
        cert = (
            _builder(_name(hosts[0]), self._cert.subject, key, HOUR if has_expired else TWO_DAYS)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .add_extension(_usage(signs=False), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        stem = hosts[0].replace(".", "-") + ("-expired" if has_expired else "")
        pem = serialization.Encoding.PEM
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return Files(
            self.file,
            self._write(f"{stem}.pem", cert.public_bytes(pem)),
            self._write(f"{stem}.key", private),
        )

    def _write(self, name: str, content: bytes) -> Path:
        file = self._folder / f"{self._name}-{name}"
        file.write_bytes(content)
        file.chmod(0o644)  # the server runs as another user
        return file


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends_after: datetime.timedelta = TWO_DAYS
) -> x509.CertificateBuilder:
    """Valid since yesterday."""
    begins = datetime.datetime.now(datetime.UTC) - TWO_DAYS / 2
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + ends_after)
    )


def _usage(signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )

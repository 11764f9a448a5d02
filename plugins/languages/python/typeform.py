"""Typeform: `Typeform-Signature` is the HMAC-SHA256 of the body in base64, after `sha256=`.

The names of WIT become those of Python: `verify-mac` is `verify_mac`, a variant has a class for each case.
"""

import json

from wit_world import WitWorld
from wit_world.imports import delivery, types, verification

MANIFEST = {
    "v": 1,
    "name": "typeform-py",
    "version": "0.1.0",
    "documentation": "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
    "schemes": ["typeform"],
    "evidence": "reported",
    "secrets": [{"name": "secret", "kind": "mac", "form": "raw", "description": "The webhook's secret."}],
    "signature_header": "Typeform-Signature",
}


class WitWorld(WitWorld):
    def manifest(self) -> str:
        return json.dumps(MANIFEST)

    def handle(self) -> types.Verdict:
        header = delivery.header("typeform-signature")
        if not header or not header.startswith("sha256="):
            return reject(types.RejectKind.MISSING_SIGNATURE, "header typeform-signature: absent, or of another form")
        signature = types.Signature(types.Encoding.BASE64, header.removeprefix("sha256=").encode())
        if not verification.verify_mac(types.MacAlgorithm.HMAC_SHA256, "secret", [types.Segment_Body()], signature):
            return reject(types.RejectKind.BAD_SIGNATURE, "no signature fits")
        event = types.Event(
            id=find("/event_id"),
            ordering_key=find("/form_response/token"),
            event_type=find("/event_type"),
            signed_at=None,
            occurred_at=None,
            sequence=None,
            response=None,
            extra=[],
        )
        return types.Verdict_Accept([event])


def reject(kind: types.RejectKind, reason: str) -> types.Verdict:
    return types.Verdict_Reject(types.Rejection(kind, reason))


def find(pointer: str) -> str | None:
    found = delivery.json(pointer)
    return found.value if isinstance(found, types.JsonValue_Text) else None

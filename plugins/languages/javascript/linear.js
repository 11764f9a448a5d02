// Linear: `Linear-Signature` is the HMAC-SHA256 of the body in hexadecimal. The time is in the body, in ms.
//
// The names of WIT become those of JavaScript: `verify-mac` is `verifyMac`, a variant is `{ tag, val }`.

import { header, json } from "hookgate:provider/delivery@1.0.0";
import { verifyMac } from "hookgate:provider/verification@1.0.0";

const MANIFEST = {
  v: 1,
  name: "linear-js",
  version: "0.1.0",
  documentation: "https://linear.app/developers/webhooks",
  schemes: ["linear"],
  evidence: "documentation",
  secrets: [{ name: "secret", kind: "mac", form: "raw", description: "The webhook's signing secret." }],
  signature_header: "Linear-Signature",
  id_stable: true,
};

export function manifest() {
  return JSON.stringify(MANIFEST);
}

export function handle() {
  const signature = header("linear-signature");
  if (!signature) return reject("missing-signature", "header linear-signature: absent");
  const text = new TextEncoder().encode(signature);
  if (!verifyMac("hmac-sha256", "secret", [{ tag: "body" }], { encoding: "hex", text })) {
    return reject("bad-signature", "no signature fits");
  }
  const time = find("/webhookTimestamp");
  return {
    tag: "accept",
    val: [{
      id: header("linear-delivery"),
      eventType: find("/type"),
      orderingKey: find("/data/id"),
      signedAt: /^[0-9]{1,15}$/.test(time ?? "") ? BigInt(time) : undefined,
      extra: [],
    }],
  };
}

function reject(kind, reason) {
  return { tag: "reject", val: { kind, reason } };
}

// A string or a number in the body; numbers keep their source spelling.
function find(pointer) {
  const found = json(pointer);
  return found && ["text", "number"].includes(found.tag) ? found.val : undefined;
}

;; The world of wit/provider.wit as a component around a guest, which is a core module put in the place of
;; the mark GUEST (a block comment; so are all marks). A guest imports "env" "memory" and what it needs of
;; the interface by its functions' names, and exports `handle`, which returns the address of a verdict (see
;; accept.wat for its layout). MANIFEST is a string, MANIFEST_LENGTH its bytes; BEFORE_MANIFEST runs first.
(component
  ;; The interface's types. The functions' and the verdict's refer to these by name, as the component model
  ;; demands. A name with a quote behind it is a shape, which its export then names.
  (import "hookgate:provider/types@1.0.0" (instance $types
    (type $bytes (list u8))
    (type $pair' (record (field "name" $bytes) (field "value" $bytes)))
    (export "pair" (type $pair (eq $pair')))
    (type $json-value' (variant
      (case "text" string) (case "number" string) (case "boolean" bool) (case "null") (case "raw" string)))
    (export "json-value" (type $json-value (eq $json-value')))
    (type $json-error' (enum "malformed" "duplicate-key" "bad-pointer"))
    (export "json-error" (type $json-error (eq $json-error')))
    (type $digest-algorithm' (enum "sha1" "sha256" "sha384" "sha512"))
    (export "digest-algorithm" (type $digest-algorithm (eq $digest-algorithm')))
    (type $mac-algorithm' (enum
      "hmac-sha1" "hmac-sha256" "hmac-sha384" "hmac-sha512" "sha1" "sha256" "sha384" "sha512"))
    (export "mac-algorithm" (type $mac-algorithm (eq $mac-algorithm')))
    (type $signature-scheme' (enum
      "ed25519" "ecdsa-p256-sha256-der" "ecdsa-p256-sha256-fixed"
      "rsa-pkcs1-sha1" "rsa-pkcs1-sha256" "rsa-pkcs1-sha512" "rsa-pss-sha256"))
    (export "signature-scheme" (type $signature-scheme (eq $signature-scheme')))
    (type $encoding' (enum "bytes" "hex" "hex-upper" "base64" "base64-url"))
    (export "encoding" (type $encoding (eq $encoding')))
    (type $body-digest' (record (field "algorithm" $digest-algorithm) (field "encoding" $encoding)))
    (export "body-digest" (type $body-digest (eq $body-digest')))
    (type $segment' (variant
      (case "literal" $bytes) (case "body") (case "body-digest" $body-digest) (case "method")
      (case "target") (case "external-url") (case "secret" string)))
    (export "segment" (type $segment (eq $segment')))
    (type $signature' (record (field "encoding" $encoding) (field "text" $bytes)))
    (export "signature" (type $signature (eq $signature')))
    (type $jwks-key' (record (field "url" string) (field "id" string)))
    (export "jwks-key" (type $jwks-key (eq $jwks-key')))
    (type $key' (variant (case "named" string) (case "certificate-url" string) (case "jwks" $jwks-key)))
    (export "key" (type $key (eq $key')))
    (type $mac-request' (record
      (field "algorithm" $mac-algorithm) (field "secret" string)
      (field "message" (list $segment)) (field "encoding" $encoding)))
    (export "mac-request" (type $mac-request (eq $mac-request')))
    (type $part' (variant (case "bytes" $bytes) (case "mac" $mac-request)))
    (export "part" (type $part (eq $part')))
    (type $texts (list (tuple string string)))
    (type $response' (record (field "status" u16) (field "headers" $texts) (field "body" (list $part))))
    (export "response" (type $response (eq $response')))
    (type $event' (record
      (field "id" (option string)) (field "ordering-key" (option string))
      (field "event-type" (option string)) (field "signed-at" (option u64))
      (field "occurred-at" (option u64)) (field "sequence" (option string))
      (field "response" (option $response)) (field "extra" $texts)))
    (export "event" (type $event (eq $event')))
    (type $reject-kind' (enum "missing-signature" "bad-signature" "stale" "malformed" "method" "media"))
    (export "reject-kind" (type $reject-kind (eq $reject-kind')))
    (type $rejection' (record (field "kind" $reject-kind) (field "reason" string)))
    (export "rejection" (type $rejection (eq $rejection')))
    (type $verdict' (variant
      (case "accept" (list $event)) (case "respond" $response) (case "reject" $rejection)))
    (export "verdict" (type (eq $verdict')))))
  (alias export $types "pair" (type $pair))
  (alias export $types "json-value" (type $json-value))
  (alias export $types "json-error" (type $json-error))
  (alias export $types "digest-algorithm" (type $digest-algorithm))
  (alias export $types "mac-algorithm" (type $mac-algorithm))
  (alias export $types "signature-scheme" (type $signature-scheme))
  (alias export $types "key" (type $key))
  (alias export $types "segment" (type $segment))
  (alias export $types "signature" (type $signature))
  (alias export $types "verdict" (type $verdict))

  (import "hookgate:provider/delivery@1.0.0" (instance $delivery
    (export "pair" (type $the-pair (eq $pair)))
    (export "json-value" (type $the-json-value (eq $json-value)))
    (export "json-error" (type $the-json-error (eq $json-error)))
    (type $found (result (option $the-json-value) (error $the-json-error)))
    (export "header" (func (param "name" string) (result (option string))))
    (export "headers" (func (param "name" string) (result (list (list u8)))))
    (export "method" (func (result string)))
    (export "target" (func (result string)))
    (export "external-url" (func (result (option string))))
    (export "query" (func (result (list $the-pair))))
    (export "form" (func (result (list $the-pair))))
    (export "body-length" (func (result u64)))
    (export "body" (func (param "offset" u64) (param "length" u64) (result (list u8))))
    (export "json" (func (param "pointer" string) (result $found)))
    (export "json-in" (func (param "document" (list u8)) (param "pointer" string) (result $found)))
    (export "json-all" (func (param "pointers" (list string)) (result (list $found))))
    (export "json-all-in" (func
      (param "document" (list u8)) (param "pointers" (list string)) (result (list $found))))
    (export "now" (func (result u64)))))
  (import "hookgate:provider/source@1.0.0" (instance $source
    (type $level' (enum "debug" "info" "warn"))
    (export "level" (type $level (eq $level')))
    (export "option" (func (param "name" string) (result (option string))))
    (export "log" (func (param "level" $level) (param "message" string)))))
  (import "hookgate:provider/verification@1.0.0" (instance $verification
    (export "digest-algorithm" (type $the-digest-algorithm (eq $digest-algorithm)))
    (export "mac-algorithm" (type $the-mac-algorithm (eq $mac-algorithm)))
    (export "signature-scheme" (type $the-signature-scheme (eq $signature-scheme)))
    (export "key" (type $the-key (eq $key)))
    (export "segment" (type $the-segment (eq $segment)))
    (export "signature" (type $the-signature (eq $signature)))
    (export "digest" (func
      (param "algorithm" $the-digest-algorithm) (param "message" (list $the-segment)) (result (list u8))))
    (export "verify-mac" (func
      (param "algorithm" $the-mac-algorithm) (param "secret" string) (param "message" (list $the-segment))
      (param "signature" $the-signature) (result bool)))
    (export "verify-signature" (func
      (param "scheme" $the-signature-scheme) (param "key" $the-key) (param "message" (list $the-segment))
      (param "signature" $the-signature) (result bool)))
    (export "verify-token" (func (param "secret" string) (param "value" (list u8)) (result bool)))))

  ;; What the host needs of a guest before the guest is there: memory, room in it, and the manifest.
  (core module $base
    (memory (export "memory") 2)
    ;; The heap begins in the middle of the first page and is never given back. It does not grow the
    ;; memory: what does not fit traps.
    (global $top (export "top") (mut i32) (i32.const 0x8000))
    (func (export "realloc") (param $old i32) (param $size i32) (param $align i32) (param $new i32) (result i32)
      (local $at i32)
      ;; at = (top + align - 1) & -align
      (local.set $at (i32.and
        (i32.sub (i32.add (global.get $top) (local.get $align)) (i32.const 1))
        (i32.sub (i32.const 0) (local.get $align))))
      (global.set $top (i32.add (local.get $at) (local.get $new)))
      (local.get $at))
    (func (export "manifest") (result i32)
      (;BEFORE_MANIFEST;)
      (i32.const 0))
    ;; The manifest as a string: its address and length. It ends at 0x1000.
    (data (i32.const 0) (i32 8 (;MANIFEST_LENGTH;)) (;MANIFEST;)))
  (core instance $base (instantiate $base))
  (alias core export $base "memory" (core memory $memory))
  (alias core export $base "realloc" (core func $realloc))

  (core func $header (canon lower (func $delivery "header") (memory $memory) (realloc $realloc)))
  (core func $headers (canon lower (func $delivery "headers") (memory $memory) (realloc $realloc)))
  (core func $method (canon lower (func $delivery "method") (memory $memory) (realloc $realloc)))
  (core func $target (canon lower (func $delivery "target") (memory $memory) (realloc $realloc)))
  (core func $external-url (canon lower (func $delivery "external-url") (memory $memory) (realloc $realloc)))
  (core func $query (canon lower (func $delivery "query") (memory $memory) (realloc $realloc)))
  (core func $form (canon lower (func $delivery "form") (memory $memory) (realloc $realloc)))
  (core func $body-length (canon lower (func $delivery "body-length")))
  (core func $body (canon lower (func $delivery "body") (memory $memory) (realloc $realloc)))
  (core func $json (canon lower (func $delivery "json") (memory $memory) (realloc $realloc)))
  (core func $json-in (canon lower (func $delivery "json-in") (memory $memory) (realloc $realloc)))
  (core func $json-all (canon lower (func $delivery "json-all") (memory $memory) (realloc $realloc)))
  (core func $json-all-in (canon lower (func $delivery "json-all-in") (memory $memory) (realloc $realloc)))
  (core func $now (canon lower (func $delivery "now")))
  (core func $option (canon lower (func $source "option") (memory $memory) (realloc $realloc)))
  (core func $log (canon lower (func $source "log") (memory $memory)))
  (core func $digest (canon lower (func $verification "digest") (memory $memory) (realloc $realloc)))
  (core func $verify-mac (canon lower (func $verification "verify-mac") (memory $memory)))
  (core func $verify-signature (canon lower (func $verification "verify-signature") (memory $memory)))
  (core func $verify-token (canon lower (func $verification "verify-token") (memory $memory)))

  (core module $guest
    (;GUEST;))
  (core instance $guest (instantiate $guest
    (with "env" (instance $base))
    (with "host" (instance
      (export "header" (func $header))
      (export "headers" (func $headers))
      (export "method" (func $method))
      (export "target" (func $target))
      (export "external-url" (func $external-url))
      (export "query" (func $query))
      (export "form" (func $form))
      (export "body-length" (func $body-length))
      (export "body" (func $body))
      (export "json" (func $json))
      (export "json-in" (func $json-in))
      (export "json-all" (func $json-all))
      (export "json-all-in" (func $json-all-in))
      (export "now" (func $now))
      (export "option" (func $option))
      (export "log" (func $log))
      (export "digest" (func $digest))
      (export "verify-mac" (func $verify-mac))
      (export "verify-signature" (func $verify-signature))
      (export "verify-token" (func $verify-token))))))

  (func (export "manifest") (result string)
    (canon lift (core func $base "manifest") (memory $memory)))
  (func (export "handle") (result $verdict)
    (canon lift (core func $guest "handle") (memory $memory))))

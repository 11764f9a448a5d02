;; Accepts every delivery, with the id of its header `x-id`.
;;
;; A verdict's layout: its case (0 accept, 1 respond, 2 reject), then from byte 4 on the case's fields. An
;; event has 120 bytes: id 0, ordering-key 12, event-type 24, signed-at 40, occurred-at 56, sequence 72,
;; response 84, extra 108. An option's first byte says whether it is there.
(import "env" "memory" (memory 1))
(import "host" "header" (func $header (param i32 i32 i32)))
(data (i32.const 0x1000) "x-id")
;; Accept, one event at 0x2010.
(data (i32.const 0x2000) (i32 0 0x2010 1))
(func (export "handle") (result i32)
  ;; The header is an option of a string: just what the event's first field is.
  (call $header (i32.const 0x1000) (i32.const 4) (i32.const 0x2010))
  (i32.const 0x2000))

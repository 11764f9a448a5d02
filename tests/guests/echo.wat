;; Answers with the delivery's body as its verdict, whatever it says. The body is the first thing on the heap,
;; so it begins at 0x8000, and its pointers count from there; accept.wat tells a verdict's layout.
(import "env" "memory" (memory 1))
(import "host" "body" (func $body (param i64 i64 i32)))
(func (export "handle") (result i32)
  ;; Where the body is, and its length, go to 0x7c00.
  (call $body (i64.const 0) (i64.const 0x10000) (i32.const 0x7c00))
  (i32.const 0x8000))

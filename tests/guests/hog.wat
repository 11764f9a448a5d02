;; Takes memory, 1 MiB at a time, until it is refused. The mark THEN is what it does then.
(import "env" "memory" (memory 1))
;; Refused: malformed, without a reason.
(data (i32.const 0x2000) (i32 2 3 0 0))
(func (export "handle") (result i32)
  (loop $more
    (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
  (;THEN;)
  (i32.const 0x2000))

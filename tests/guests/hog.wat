;; Takes memory, 1 MiB at a time, until it is refused; half of what it may have, in a memory of its own,
;; counts as well. The mark THEN is what it does then.
(import "env" "memory" (memory $shared 1))
(memory $own 128)
;; Refused: malformed, without a reason.
(data (memory $shared) (i32.const 0x2000) (i32 2 3 0 0))
(func (export "handle") (result i32)
  (loop $more
    (br_if $more (i32.ne (memory.grow $shared (i32.const 16)) (i32.const -1))))
  (;THEN;)
  (i32.const 0x2000))

;; Computes for ever, without the host.
(import "env" "memory" (memory 1))
(func (export "handle") (result i32)
  (loop $again (br $again))
  (unreachable))

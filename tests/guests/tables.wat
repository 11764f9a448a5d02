;; Takes table elements, 100 at a time, until it is refused; those of its other table count as well.
(import "env" "memory" (memory 1))
(table $other 500 funcref)
(table $elements 1 funcref)
(func (export "handle") (result i32)
  (loop $more
    (br_if $more (i32.ne (table.grow $elements (ref.null func) (i32.const 100)) (i32.const -1))))
  (unreachable))

;; Wants files and the time of the machine, which no plugin gets.
(component
  (import "wasi:cli/environment@0.2.0" (instance
    (export "get-arguments" (func (result (list string))))))
  (import "wasi:clocks/wall-clock@0.2.0" (instance
    (export "now" (func (result u64))))))

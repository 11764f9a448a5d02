variable "name" {
  description = "The table's name."
  type        = string
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts the table."
  type        = string
}

variable "deletion_protection" {
  description = "Whether the table refuses to be deleted. A deleted table forgets every event: each delivery that comes again is a new one."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}

variable "name" {
  description = "The bucket's name, unique in all of AWS."
  type        = string
}

variable "expire_days" {
  description = "After how many days objects expire. No sooner than claims do."
  type        = number
}

variable "claim_ttl_seconds" {
  description = "How long claims live."
  type        = number
}

variable "kms_key_arn" {
  description = "The customer managed key that encrypts objects."
  type        = string
}

variable "tags" {
  description = "Tags of everything."
  type        = map(string)
  default     = {}
}

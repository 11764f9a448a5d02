variable "region" {
  description = "The region."
  type        = string
  default     = "eu-central-1"
}

variable "vpc_id" {
  description = "The VPC."
  type        = string
}

variable "public_subnet_ids" {
  description = "Public subnets in two zones."
  type        = list(string)
}

variable "private_subnet_ids" {
  description = "Private subnets in two zones."
  type        = list(string)
}

variable "image" {
  description = "The gateway's image, pinned."
  type        = string
}

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

variable "repository_arns" {
  description = "The ECR repository of the image."
  type        = list(string)
}

variable "certificate_arn" {
  description = "The load balancer's certificate."
  type        = string
}

variable "access_log_bucket" {
  description = "The bucket of its access logs."
  type        = string
}

variable "alarm_topic_arn" {
  description = "The SNS topic that alarms go to."
  type        = string
}

variable "claim_check_bucket" {
  description = "The name of the bucket for claim checks."
  type        = string
}

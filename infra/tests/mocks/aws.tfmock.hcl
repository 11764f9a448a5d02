# What AWS would answer, as far as anything is made of it.

mock_data "aws_caller_identity" {
  defaults = { account_id = "123456789012" }
}

mock_data "aws_partition" {
  defaults = { partition = "aws" }
}

mock_data "aws_region" {
  defaults = { name = "eu-central-1" }
}

mock_resource "aws_kms_key" {
  defaults = { arn = "arn:aws:kms:eu-central-1:123456789012:key/11111111-2222-3333-4444-555555555555" }
}

mock_resource "aws_dynamodb_table" {
  defaults = { arn = "arn:aws:dynamodb:eu-central-1:123456789012:table/hookgate-claims" }
}

mock_resource "aws_sqs_queue" {
  defaults = {
    arn = "arn:aws:sqs:eu-central-1:123456789012:queue"
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/hookgate-events.fifo"
  }
}

mock_resource "aws_secretsmanager_secret" {
  defaults = { arn = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:hookgate/SECRET-abcdef" }
}

mock_resource "aws_cloudwatch_log_group" {
  defaults = { arn = "arn:aws:logs:eu-central-1:123456789012:log-group:/hookgate/hookgate/gateway" }
}

mock_resource "aws_iam_role" {
  defaults = { arn = "arn:aws:iam::123456789012:role/hookgate" }
}

mock_resource "aws_lb" {
  defaults = {
    arn        = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:loadbalancer/net/hookgate/0123456789abcdef"
    arn_suffix = "net/hookgate/0123456789abcdef"
  }
}

mock_resource "aws_lb_target_group" {
  defaults = {
    arn        = "arn:aws:elasticloadbalancing:eu-central-1:123456789012:targetgroup/hookgate/0123456789abcdef"
    arn_suffix = "targetgroup/hookgate/0123456789abcdef"
  }
}

mock_resource "aws_ecs_task_definition" {
  defaults = { arn = "arn:aws:ecs:eu-central-1:123456789012:task-definition/hookgate:1" }
}

mock_resource "aws_wafv2_web_acl" {
  defaults = { arn = "arn:aws:wafv2:eu-central-1:123456789012:regional/webacl/hookgate/1" }
}

mock_resource "aws_elasticache_replication_group" {
  defaults = { primary_endpoint_address = "master.hookgate-claims.abcdef.euc1.cache.amazonaws.com" }
}

mock_resource "aws_s3_bucket" {
  defaults = { arn = "arn:aws:s3:::hookgate-bodies" }
}

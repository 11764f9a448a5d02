# Claims in Valkey or Redis, where DynamoDB's price or its few milliseconds are too much: TLS, a replica in another
# zone, and no eviction, since an evicted claim makes a new event of the next delivery.
#
# Replication is asynchronous: a failover may forget the newest claims, and their next deliveries are queued again
# unless the queue's window still knows them. `wait_replicas` narrows that.

resource "aws_elasticache_parameter_group" "this" {
  name        = var.name
  family      = var.parameter_family
  description = "Hookgate: no eviction"
  tags        = var.tags

  parameter {
    name  = "maxmemory-policy"
    value = "noeviction"
  }
}

resource "aws_elasticache_subnet_group" "this" {
  name        = var.name
  description = "Hookgate ${var.name}: where the claims are"
  subnet_ids  = var.subnet_ids
  tags        = var.tags
}

resource "aws_security_group" "this" {
  name        = "${var.name}-claims"
  description = "Hookgate ${var.name}: the claim store, for the gateways alone"
  vpc_id      = var.vpc_id
  tags        = var.tags
}

resource "aws_vpc_security_group_ingress_rule" "gateways" {
  security_group_id            = aws_security_group.this.id
  description                  = "Gateways"
  referenced_security_group_id = var.gateway_security_group_id
  ip_protocol                  = "tcp"
  from_port                    = local.port
  to_port                      = local.port
}

resource "aws_elasticache_replication_group" "this" {
  #checkov:skip=CKV_AWS_31:TLS is on; the auth token is set by hand after the apply, since it would stand in the state (README.md)
  #checkov:skip=CKV2_AWS_50:Failover is on wherever there is a replica, which is the default; the scanner does not compute that

  replication_group_id       = var.name
  description                = "Hookgate ${var.name}: claims"
  engine                     = var.engine
  engine_version             = var.engine_version
  node_type                  = var.node_type
  port                       = local.port
  num_cache_clusters         = 1 + var.replicas
  automatic_failover_enabled = var.replicas > 0
  multi_az_enabled           = var.replicas > 0
  parameter_group_name       = aws_elasticache_parameter_group.this.name
  subnet_group_name          = aws_elasticache_subnet_group.this.name
  security_group_ids         = [aws_security_group.this.id]
  at_rest_encryption_enabled = true
  kms_key_id                 = var.kms_key_arn
  transit_encryption_enabled = true
  transit_encryption_mode    = "required"
  snapshot_retention_limit   = 0
  auto_minor_version_upgrade = true
  apply_immediately          = false
  tags                       = var.tags

  lifecycle {
    # Set by hand, so that it never stands in the state; see README.md.
    ignore_changes = [auth_token, auth_token_update_strategy]
  }
}

locals {
  port = 6379
}

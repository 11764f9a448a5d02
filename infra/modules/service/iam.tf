# Two roles: the gateway's own, and that of Fargate, which fetches image and secrets and writes the log.

locals {
  assume = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "ecs-tasks.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.this.account_id }
        # A task's ARN is made when it starts.
        ArnLike = { "aws:SourceArn" = "arn:${data.aws_partition.this.partition}:ecs:${local.region}:${data.aws_caller_identity.this.account_id}:*" }
      }
    }]
  })

  task_statements = concat(var.task_statements, [
    {
      Sid      = "Metrics"
      Effect   = "Allow"
      Action   = ["logs:CreateLogStream", "logs:PutLogEvents"]
      Resource = ["${aws_cloudwatch_log_group.metrics.arn}:log-stream:${local.metrics_stream}"]
    },
  ])

  execution_statements = concat(
    [
      {
        Sid    = "Log"
        Effect = "Allow"
        Action = ["logs:CreateLogStream", "logs:PutLogEvents"]
        # The rest of a stream's name is made when its task starts.
        Resource = [for name in ["gateway", "collector"] : "${aws_cloudwatch_log_group.gateway.arn}:log-stream:${name}/*"]
      },
    ],
    [
      for arns in [values(var.secret_arns)] : {
        Sid      = "Secrets"
        Effect   = "Allow"
        Action   = ["secretsmanager:GetSecretValue"]
        Resource = sort(distinct(arns))
      } if length(arns) > 0
    ],
    [
      for arns in [values(var.secret_arns)] : {
        Sid       = "SecretsKey"
        Effect    = "Allow"
        Action    = ["kms:Decrypt"]
        Resource  = sort(distinct(concat([var.kms_key_arn], var.secret_key_arns)))
        Condition = { StringEquals = { "kms:ViaService" = "secretsmanager.${local.region}.amazonaws.com" } }
      } if length(arns) > 0
    ],
    [
      for arn in var.repository_arns : {
        Sid      = "Image${index(var.repository_arns, arn)}"
        Effect   = "Allow"
        Action   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
        Resource = [arn]
      }
    ],
    [
      for arns in [var.repository_arns] : {
        # The one action that knows no resource.
        Sid      = "ImageLogin"
        Effect   = "Allow"
        Action   = ["ecr:GetAuthorizationToken"]
        Resource = ["*"]
      } if length(arns) > 0
    ],
  )
}

resource "aws_iam_role" "task" {
  name               = "${var.name}-${local.region}-gateway"
  description        = "What Hookgate ${var.name} may do: claim, send, and tell its metrics"
  assume_role_policy = local.assume
  tags               = var.tags
}

resource "aws_iam_role_policy" "task" {
  name   = "gateway"
  role   = aws_iam_role.task.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.task_statements })
}

resource "aws_iam_role" "execution" {
  name               = "${var.name}-${local.region}-execution"
  description        = "How Fargate starts Hookgate ${var.name}: image, secrets, log"
  assume_role_policy = local.assume
  tags               = var.tags
}

resource "aws_iam_role_policy" "execution" {
  name   = "execution"
  role   = aws_iam_role.execution.id
  policy = jsonencode({ Version = "2012-10-17", Statement = local.execution_statements })
}

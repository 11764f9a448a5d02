# The claim store: one item for each event, which says what became of it.
#
# The gateway judges expiry by itself, in conditions; the time to live only tidies up.

data "aws_region" "this" {}

resource "aws_dynamodb_table" "this" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "pk"
  deletion_protection_enabled = var.deletion_protection
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  ttl {
    attribute_name = "expires_at"
    enabled        = true
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = true
    kms_key_arn = var.kms_key_arn
  }
}

locals {
  # Exactly the calls of gateway/src/store/dynamodb.rs, and those by which `check` looks at the table.
  statements = [
    {
      Sid    = "Claims"
      Effect = "Allow"
      Action = [
        "dynamodb:DeleteItem",
        "dynamodb:DescribeTable",
        "dynamodb:DescribeTimeToLive",
        "dynamodb:GetItem",
        "dynamodb:PutItem",
        "dynamodb:UpdateItem",
      ]
      Resource = [aws_dynamodb_table.this.arn]
    },
    {
      # DynamoDB decrypts the table's key in the name of whoever reads or writes.
      Sid       = "ClaimsKey"
      Effect    = "Allow"
      Action    = ["kms:Decrypt"]
      Resource  = [var.kms_key_arn]
      Condition = { StringEquals = { "kms:ViaService" = "dynamodb.${data.aws_region.this.name}.amazonaws.com" } }
    },
  ]
}

# A bucket for bodies that are too large for a message (claim checks). The gateway does not use it yet: larger events
# are answered 413. It is here so that its lifecycle is right from the first day.

resource "aws_s3_bucket" "this" {
  #checkov:skip=CKV2_AWS_62:Nobody waits for these objects: the message that names one is the notification
  #checkov:skip=CKV_AWS_18:CloudTrail data events record access where that is wanted; a bucket of logs would need the same waiver
  #checkov:skip=CKV_AWS_144:An object lives in the home region of its tenant, as its message and its claim do

  bucket = var.name
  tags   = var.tags
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket                  = aws_s3_bucket.this.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

# The gateway never deletes: an object lives as long as any message or claim that names it.
resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    id     = "expire"
    status = "Enabled"

    filter {}

    expiration {
      days = var.expire_days
    }

    noncurrent_version_expiration {
      noncurrent_days = 1
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }

  lifecycle {
    precondition {
      condition     = var.expire_days * 86400 >= var.claim_ttl_seconds
      error_message = "Objects would expire after ${var.expire_days} days (${var.expire_days * 86400} s), before the claims of ${var.claim_ttl_seconds} s that stand for their events.\nhint: use at least ${ceil(var.claim_ttl_seconds / 86400)} days, or leave expire_days out at the root."
    }
  }

  depends_on = [aws_s3_bucket_versioning.this]
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket.this.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "OnlyTls"
      Effect    = "Deny"
      Principal = "*"
      Action    = "s3:*"
      Resource  = [aws_s3_bucket.this.arn, "${aws_s3_bucket.this.arn}/*"]
      Condition = { Bool = { "aws:SecureTransport" = "false" } }
    }]
  })

  depends_on = [aws_s3_bucket_public_access_block.this]
}

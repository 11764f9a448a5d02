# Places for secrets. Their values are put there by hand or by a pipeline, never by Terraform, so that none stands
# in a state: aws secretsmanager put-secret-value --secret-id NAME --secret-string file://VALUE

resource "aws_secretsmanager_secret" "this" {
  #checkov:skip=CKV2_AWS_57:The values are issued by providers, so they are rotated there; a source takes the old and the new one meanwhile

  for_each = var.names

  name                    = "${var.prefix}/${each.key}"
  description             = each.value
  kms_key_id              = var.kms_key_arn
  recovery_window_in_days = var.recovery_window_days
  tags                    = var.tags
}

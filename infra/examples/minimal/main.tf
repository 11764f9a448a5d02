# The least that is production: claims in DynamoDB, TLS ended by the gateways, one source.

module "hookgate" {
  source = "../.."

  vpc_id                   = var.vpc_id
  load_balancer_subnet_ids = var.public_subnet_ids
  task_subnet_ids          = var.private_subnet_ids
  image                    = var.image
  alarm_actions            = []

  tls = { certificate = "TLS_CERTIFICATE", key = "TLS_KEY" }

  secrets = {
    TLS_CERTIFICATE       = "The certificate and those above it, as PEM"
    TLS_KEY               = "Its private key, as PEM"
    GITHUB_WEBHOOK_SECRET = "As in the webhook's settings at GitHub"
  }

  tenants = {
    acme = {
      github = { plugin = "github", secrets = { secret = ["GITHUB_WEBHOOK_SECRET"] } }
    }
  }
}

# Claims in ElastiCache. After the first apply set the cache's auth token, as infra/README.md says.

module "hookgate" {
  source = "../.."

  name                     = "hookgate-redis"
  vpc_id                   = var.vpc_id
  load_balancer_subnet_ids = var.public_subnet_ids
  task_subnet_ids          = var.private_subnet_ids
  image                    = var.image
  alarm_actions            = []

  store = "redis"
  redis = { node_type = "cache.m7g.large", replicas = 2, wait_replicas = 1 }

  tls = { certificate = "TLS_CERTIFICATE", key = "TLS_KEY" }

  secrets = {
    TLS_CERTIFICATE       = "The certificate and those above it, as PEM"
    TLS_KEY               = "Its private key, as PEM"
    STRIPE_WEBHOOK_SECRET = "The whole whsec_… of the endpoint at Stripe"
  }

  tenants = {
    acme = {
      stripe = { plugin = "stripe", secrets = { secret = ["STRIPE_WEBHOOK_SECRET"] } }
    }
  }
}

package gen

// Names of the applications and their parts.
var (
	areas = []string{
		"checkout", "payments", "ledger", "catalog", "search", "recommend", "session", "auth", "gateway", "edge",
		"mailer", "notifier", "billing", "invoice", "inventory", "pricing", "shipping", "tracker", "geo", "maps",
		"feed", "timeline", "media", "thumbs", "transcode", "ingest", "collector", "etl", "warehouse", "reports",
		"metrics", "logs", "audit", "policy", "flags", "profile", "consent", "fraud", "risk", "ads",
	}
	roles = []string{"api", "web", "worker", "consumer", "sync", "cache", "db", "gw", "scheduler", "bff", "indexer"}
	teams = []string{"core", "growth", "platform", "data", "payments", "sre", "discovery", "identity"}

	registries = []string{
		"registry.example.com/shop", "ghcr.io/example", "123456789012.dkr.ecr.eu-west-1.amazonaws.com", "docker.io/library", "quay.io/example",
	}
	// settings are names of environment variables; suffixes multiply them.
	settings = []string{
		"LOG_LEVEL", "LOG_FORMAT", "PORT", "METRICS_PORT", "DATABASE_URL", "DATABASE_POOL_SIZE", "REDIS_URL", "KAFKA_BROKERS", "KAFKA_TOPIC",
		"KAFKA_GROUP_ID", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "FEATURE_FLAGS_URL", "JWT_ISSUER",
		"JWT_AUDIENCE", "HTTP_TIMEOUT", "HTTP_MAX_CONNECTIONS", "CACHE_TTL", "CACHE_SIZE", "RETRY_MAX_ATTEMPTS", "RETRY_BACKOFF", "S3_BUCKET",
		"AWS_REGION", "SENTRY_DSN", "STATSD_HOST", "GOMAXPROCS", "GOGC", "JAVA_OPTS", "NODE_ENV", "TZ", "BATCH_SIZE", "WORKER_CONCURRENCY",
		"PAYMENTS_API", "CATALOG_API", "SEARCH_API", "PROFILE_API", "ALLOWED_ORIGINS", "SHUTDOWN_DELAY", "ENABLE_TRACING", "ENABLE_PROFILING",
		"SAMPLE_RATE", "MAX_UPLOAD_BYTES", "TEMPLATE_DIR", "LOCALE", "CURRENCY", "RATE_LIMIT", "CIRCUIT_BREAKER_THRESHOLD", "GRPC_PORT",
	}
)

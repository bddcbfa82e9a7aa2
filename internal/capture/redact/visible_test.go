package redact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrdinaryValues lists values that must stay visible, although they are near words of credentials or have
// similar forms. Most were once hidden, in manifests of public projects.
func TestOrdinaryValues(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct{ why, resource, raw string }{
		{"images, identifiers, versions", "pods", `{"metadata":{"uid":"0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0","resourceVersion":"123456789","generation":7},"spec":{"image":"registry.example.com:5000/a/b@sha256:4f0a1c7d1f6e0f4c1f9b0c2d3e4f5061728394a5b6c7d8e9f0011223344556ff"},"status":{"imageID":"docker-pullable://r.example.com/a@sha256:4f0a1c7d1f6e0f4c1f9b0c2d3e4f5061728394a5b6c7d8e9f0011223344556ff","containerID":"containerd://0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}`},
		{"checksums of settings", "deployments.apps", `{"spec":{"template":{"metadata":{"annotations":{"checksum/config":"4f0a1c7d1f6e0f4c1f9b0c2d3e4f5061728394a5b6c7d8e9f0011223344556ff","kubectl.kubernetes.io/restartedAt":"2026-01-01T00:00:00Z","rollme":"a1B2c"}}}}}`},
		{"service accounts and their tokens' settings", "pods", `{"spec":{"serviceAccountName":"secret-reader","automountServiceAccountToken":true,"volumes":[{"name":"token","projected":{"sources":[{"serviceAccountToken":{"audience":"vault","expirationSeconds":3607,"path":"token"}}]}},{"secret":{"secretName":"db-password","items":[{"key":"password","path":"password"}]}}]}}`},
		{"references in custom resources", "widgets.example.com", `{"spec":{"passwordSecretRef":{"name":"db","key":"password"},"tokenSecretRef":{"name":"token","key":"token"},"keyRef":"tls","credentialsRef":{"name":"x"},"existingSecret":"redis-password","secretKeyRef":{"name":"a","key":"api-key"},"tokenExpirationSeconds":600,"api":{"key":"my-key"}}}`},
		{"Strimzi's names of keys", "kafkabridges.kafka.strimzi.io", `{"spec":{"authentication":{"type":"plain","passwordSecret":{"secretName":"bridge","password":"password"}},"config":{"strimzi.authorization.client.id":"kafka"}}}`},
		{"where cert-manager injects", "mutatingwebhookconfigurations.admissionregistration.k8s.io", `{"metadata":{"annotations":{"cert-manager.io/inject-ca-from-secret":"cert-manager/cert-manager-webhook-ca"}},"webhooks":[{"clientConfig":{"caBundle":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSUI="}}]}`},
		{"certificates and public keys", "widgets.example.com", `{"spec":{"ca":"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n","pub":"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ a@b","jwks":"{\"keys\":[{\"kty\":\"RSA\",\"n\":\"0vx7agoebGcQSuuPiLJXZpt\",\"e\":\"AQAB\"},{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}]}","img":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA"}}`},
		{"the settings of certificates", "certificates.cert-manager.io", `{"spec":{"secretName":"web-tls","privateKey":{"algorithm":"ECDSA","size":256,"rotationPolicy":"Always","encoding":"PKCS8"},"keystores":{"jks":{"create":true,"passwordSecretRef":{"name":"a","key":"b"}}}}}`},
		{"issuers", "clusterissuers.cert-manager.io", `{"spec":{"acme":{"privateKeySecretRef":{"name":"letsencrypt-key"},"solvers":[{"dns01":{"cloudflare":{"apiTokenSecretRef":{"name":"cf","key":"api-token"}}}}]}}}`},
		{"Prometheus' monitors", "servicemonitors.monitoring.coreos.com", `{"spec":{"endpoints":[{"bearerTokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token","basicAuth":{"username":{"name":"a","key":"user"},"password":{"name":"a","key":"password"}},"bearerTokenSecret":{"key":""}}]}}`},
		{"alerts and metrics", "prometheusrules.monitoring.coreos.com", `{"spec":{"groups":[{"rules":[{"alert":"TokenExpiresSoon","expr":"vault_token_ttl_seconds{job=\"a\"} < 600","annotations":{"summary":"The token of {{ $labels.pod }} expires soon","runbook_url":"https://example.com/runbooks/token"}}]}]}}`},
		{"conditions of nodes", "nodes", `{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status"}]}}`},
		{"URLs without credentials", "pods", `{"env":[{"name":"DB","value":"postgres://db.shop.svc:5432/shop?sslmode=require"},{"name":"AUTH_URL","value":"https://login.example.com/oauth2/token"},{"name":"PROXY","value":"http://proxy:3128"},{"name":"CALLBACK","value":"https://a/?next=https%3A%2F%2Fb%2Fc%40d"}]}`},
		{"flags named like tokens", "pods", `{"args":["--rate-limiter=token-bucket","--token-bucket-size=100","--enable-secrets=true","--password-policy=strict","--max-tokens=4096"],"env":[{"name":"RATE_LIMITER","value":"token-bucket"},{"name":"MAX_TOKENS","value":"4096"},{"name":"ALLOW_EMPTY_PASSWORD","value":"1"},{"name":"GOOGLE_APPLICATION_CREDENTIALS","value":"$(workspaces.release.path)/$(params.file)"}]}`},
		{"Kubernetes' and OpenShift's users", "securitycontextconstraints.security.openshift.io", `{"users":["system:serviceaccount:shop:web"],"groups":["system:authenticated"]}`},
		{"a list of resources", "configmaps", `{"data":{"config.yaml":"a: b\nsecret: [ status, secret ]\nc: d\n"}}`},
		{"the Secrets Store", "secretproviderclasses.secrets-store.csi.x-k8s.io", `{"spec":{"parameters":{"objects":"- objectName: db\n  secretPath: secret/data/db\n  secretKey: \"password\"\n"}}}`},
		{"Vault's agent", "pods", `{"metadata":{"annotations":{"vault.hashicorp.com/agent-inject-secret-db":"database/creds/app","vault.hashicorp.com/role":"app","vault.hashicorp.com/agent-inject-template-db":"{{- with secret \"database/creds/app\" -}}\npassword={{ .Data.password }}\n{{- end }}\n"}}}`},
		{"headers of nginx without secrets", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/configuration-snippet":"proxy_set_header Host $host;\nproxy_set_header Authorization $http_authorization;\nproxy_set_header X-Api-Key $http_x_api_key;\nmore_clear_headers Server;\n","nginx.ingress.kubernetes.io/auth-secret":"basic-auth","nginx.ingress.kubernetes.io/auth-type":"basic"}}}`},
		{"prose", "widgets.example.com", `{"status":{"message":"The key is\nidentified by name and kind.\nThe password is\nset token by hand, or the\nsecret is not found\n","reason":"waiting for secret \"db-password\""}}`},
		{"JSON patches of other fields, and types", "widgets.example.com", `{"spec":{"patches":[{"op":"add","path":"/spec/replicas","value":"3"},{"op":"replace","path":"/metadata/labels/tier","value":"web"}],"from":{"type":"Secret","value":"db"},"flag":{"name":"x","sensitive":false,"value":"visible"}}}`},
		{"texts that only look like base64", "widgets.example.com", `{"spec":{"a":"a-very-long-name-of-a-deployment-abc123","b":"0123456789abcdef0123456789abcdef","c":"line-one-of-a-text\nline-two-of-a-text"}}`},
		{"templates of GitHub, label requirements in YAML, and numbers of ports", "configmaps", `{"data":{"a.yaml":"env:\n  API_TOKEN: ${{ secrets.API_TOKEN }}\nx:\n- key: example.com/token\n  operator: NotIn\n  values:\n  - ignored\nurl: \"http://a:80\"\nmail: \"b@c\"\n"}}`},
		{"names of programs among arguments, and keys beside references", "pods", `{"command":["app"],"args":["--scheme","https","-a","b","mysql","-px"],"spec":{"secretName":"db","passwordKey":"DB_PASSWORD","userKey":"userName"}}`},
		{"Grafana Alloy's settings", "configmaps", `{"data":{"config.alloy":"remote {\n  basic_auth {\n    password = remote.kubernetes.secret.loki.data[\"password\"]\n    access_key = convert.nonsensitive(remote.kubernetes.secret.s3.data[\"accessKey\"])\n    bearer_token = env(\"LOKI_TOKEN\")\n  }\n  headers = {\n    a = \"b\",\n  }\n}\n"}}`},
		{"look-ups without a default, and a word that a script replaces", "configmaps", `{"data":{"a.py":"import os\npassword = os.getenv(\"DB_PASSWORD\")\ntoken = os.environ.get('TOKEN')\n","cni.json":"{\n\"kubeconfig\": \"__KUBECONFIG_FILEPATH__\"\n}"}}`},
		{"empty headers, names of headers, and a template's loop", "configmaps", `{"data":{"a.yaml":"request:\n  headers: {}\nallow:\n  headers:\n  - content-type\n  - baggage\nimagePullSecrets:\n{{- range .Values.pullSecrets }}\n- name: {{ . }}\n{{- end }}\n"}}`},
		{"names of headers in flags, helpers, a data source's references", "pods", `{"args":["--requestheader-group-headers=X-Remote-Group","--registryCredentialHelpers=google,amazon","--database-dsn=$(DB_USER):$(DB_PASSWORD)@tcp(db:3306)/shop?charset=utf8mb4"]}`},
		{"redirections and variables after flags in a script", "pods", `{"command":["sh","-c","kubectl get pods --no-headers 2>/dev/null | wc -l\necho \"configure -access_key $accesskey -secret_key $secretkey\" | weed shell\n"]}`},
		{"Kyverno's policies", "clusterpolicies.kyverno.io", `{"spec":{"rules":[{"generate":{"kind":"ConfigMap","data":{"kind":"ConfigMap","metadata":{"labels":{"a":"b"}},"data":{"address":"kafka:9092"}}}}],"variables":[{"name":"x","expression":"resource.List(\"v1\", \"secrets\", \"default\")"}]}}`},
		{"counts, rates, and what does not apply", "policyreports.wgpolicyk8s.io", `{"summary":{"pass":12,"fail":0},"spec":{"token_bucket":{"max_tokens":10,"tokens_per_fill":100}},"status":{"externalConnectionString":"N/A"}}`},
		{"names of Secrets, of their keys, and a path", "widgets.example.com", `{"spec":{"data":[{"secretKey":"secretKey","remoteRef":{"key":"a"}},{"secretKey":".dockerconfigjson","remoteRef":{"key":"b"}}],"rbd":{"keyring":"keyringValue"}},"status":{"secret":"my-user"}}`},
		{"identified in a sentence, and a regular expression", "widgets.example.com", `{"status":{"message":"The analysis (identified by \"insightsRequestID\") is not available.","other":"Errors are identified by ` + "`a.b=5`" + `."},"spec":{"rule":"self.matches('^((a)(?::[0-9]+)?)(?::([a-z]{0,127}))?(?:@([A-Za-z]))?$')"}}`},
		{"references in templates, and their messages", "configmaps", `{"data":{"a.yaml":"a: b\npassword: {{ required \"set it\" .Values.password }}\ntoken: {{ include \"app.token\" . }}\nsecret: {{ index .Data \"key\" | quote }}\n"}}`},
		{"names of keys, of ways to log in, and of literals", "widgets.example.com", `{"spec":{"auth":"oidc","proxyAuth":"https://login.example.com/auth","pat":"web","configMapGenerator":[{"name":"a","literals":["LOG=info"]}],"labels":[{"key":"api_key","value":"premium"}]},"message":"spec.replicas: Invalid value: \"many\": must be a number"}`},
		{"a comment with words behind a credential's reference", "configmaps", `{"data":{"a.yaml":"a: b\npassword: ${DB_PASSWORD} # from the vault\nc: d\n"}}`},
		{"programs without passwords", "pods", `{"command":["sh","-c","curl -u \"$USER:$PASS\" https://x/y; mysql -h db -p\"$PW\" shop; mc ls m/b; aws configure set region eu-west-1; htpasswd -v f app"]}`},
	} {
		want, got := decode(t, tc.raw), decode(t, tc.raw)
		if _, err := r.Apply(tc.resource, got); err != nil {
			t.Errorf("%s: %v", tc.why, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-before +after)\n%s", tc.why, d)
		}
	}
}

// TestDocumentedLimits checks that docs/security.md is right about what is not found: remove from there what is
// found after all.
func TestDocumentedLimits(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct{ why, resource, raw string }{
		{"an innocent name", "widgets.example.com", `{"spec":{"color":"hunter2","note":"the door opens with hunter2"}}`},
		{"a position", "pods", `{"command":["sh","-c","mytool login admin hunter2"]}`},
		{"a call", "configmaps", `{"data":{"init.groovy":"realm.createAccount(\"admin\", \"hunter2\")\n"}}`},
		{"a key", "configmaps", `{"data":{"rclone.conf":"[b2]\naccount = x\nkey = hunter2\n"}}`},
		{"a map", "configmaps", `{"data":{"nginx.conf":"map $http_x $ok {\n  \"hunter2\" 1;\n}\n"}}`},
		{"a column", "configmaps", `{"data":{"users.csv":"user,password\nalice,hunter2\n"}}`},
		{"parts", "widgets.example.com", `{"spec":{"lua":"a\nh:add(\"x\", \"Basic \" .. \"hunter2\")\n","first":"hunt","second":"er2"}}`},
		{"hexadecimal and base32", "widgets.example.com", `{"spec":{"a":"70617373776f72643a2068756e74657232","b":"OBQXG43XN5ZGIORANB2W45DFOIZA===="}}`},
		{"a reference's name", "widgets.example.com", `{"spec":{"tlsSecret":"hunter"},"status":{"secret":"hunter"}}`},
		{"a default of Terraform", "configmaps", `{"data":{"a.tf":"variable \"db_password\" {\n  default = \"hunter2\"\n}\n"}}`},
		{"a token over lines", "configmaps", `{"data":{"a":"x\neyJhbGciOiJIUzI1NiJ9.\neyJzdWIiOiJhIn0.\nhunter2\n"}}`},
		{"URLs", "configmaps", `{"data":{"a":"postgres://app:x hunter2@h/d http://app:1234/hunter2@h app:hunter2@h:5432/d\n"}}`},
		{"a plain word behind a space", "configmaps", `{"data":{"a.conf":"x y\ntoken abc\n"}}`},
	} {
		want, got := decode(t, tc.raw), decode(t, tc.raw)
		if _, err := r.Apply(tc.resource, got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s is found: (-before +after)\n%s", tc.why, d)
		}
	}
}

// TestBelowSecrets: what is below secrets may be a passphrase, so that it is hidden even if it reads like an object's name.
func TestBelowSecrets(t *testing.T) {
	obj := decode(t, `{"spec":{"secrets":{"db":"correct-horse-battery"}}}`)
	if hid, err := redactor(t).Apply("widgets.example.com", obj); err != nil || !hid || strings.Contains(encode(t, obj), "horse") {
		t.Errorf("hidden %t, %v: %s", hid, err, encode(t, obj))
	}
}

package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// arrangements are objects whose fields arrange a name and its value in other ways; see shapes. "swordfish" is a credential
// that reads like an ordinary word. testdata/configs/arrangements.txtar has those of texts.
var arrangements = []struct{ why, resource, object string }{
	{"a map's key", "widgets.example.com", `{"spec":{"credentials":{"key":"swordfish"}}}`},
	{"the key of an API", "widgets.example.com", `{"spec":{"apiKeys":[{"key":"swordfish"}],"apiKey":{"key":"swordfish"}}}`},
	{"a map of variables", "widgets.example.com", `{"spec":{"secretEnv":{"KEY":"swordfish","NAME":"swordfish"}}}`},
	{"a map of variables with their hosts", "widgets.example.com", `{"spec":{"extraSecrets":{"DB_HOST":"swordfish","URL":"swordfish"}}}`},
	{"a map of variables that are a name and a key", "widgets.example.com", `{"spec":{"secretEnv":{"key":"swordfish","name":"swordfish"}}}`},
	{"a list of variables", "widgets.example.com", `{"spec":{"secretEnv":[{"name":"A","value":"swordfish"}],"secrets":[{"name":"a","content":"swordfish"}]}}`},
	{"a map's key with a capital", "widgets.example.com", `{"spec":{"Credentials":{"Key":"swordfish"}}}`},
	{"a map with a name alone", "widgets.example.com", `{"spec":{"secretEnv":{"key":"swordfish"}}}`},
	{"a variable and its content", "widgets.example.com", `{"spec":{"a":[{"variable":"DB_PASSWORD","content":"swordfish"}]}}`},
	{"a variable, shortened", "widgets.example.com", `{"spec":{"a":[{"var":"DB_PASSWORD","val":"swordfish"},{"env":"API_TOKEN","content":"swordfish"}]}}`},
	{"a key and its val", "widgets.example.com", `{"spec":{"a":[{"key":"DB_PASSWORD","val":"swordfish"}]}}`},
	{"a name and a string", "applications.argoproj.io", `{"spec":{"source":{"plugin":{"parameters":[{"name":"password","string":"swordfish"}]}}}}`},
	{"a name and a map or a list", "applications.argoproj.io", `{"spec":{"source":{"plugin":{"parameters":[{"name":"tokens","array":["swordfish"]},{"name":"passwords","map":{"a":"swordfish"}}]}}}}`},
	{"a parameter's key and value", "stacks.cloudformation.services.k8s.aws", `{"spec":{"parameters":[{"parameterKey":"DBPassword","parameterValue":"swordfish"},{"ParameterKey":"Token","ParameterValue":"swordfish"}]}}`},
	{"a setting's name and value", "widgets.example.com", `{"spec":{"a":[{"settingName":"password","settingValue":"swordfish"},{"option_name":"api-token","option_value":"swordfish"},{"property":"db.password","value":"swordfish"}]}}`},
	{"a field in capitals", "widgets.example.com", `{"spec":{"a":[{"KEY":"DB_PASSWORD","VALUE":"swordfish"},{"Variable":"TOKEN","Content":"swordfish"}]}}`},
	{"KrakenD's keys", "configmaps", `{"data":{"krakend.json":«{"extra_config":{"auth/api-keys":{"keys":[{"key":"swordfish","roles":["admin"]}]}}}»}}`},
	{"KrakenD's keys, in a resource", "krakends.example.com", `{"spec":{"extra_config":{"auth/api-keys":{"keys":[{"key":"swordfish","roles":["admin"]}]}}}}`},
	{"a pair in YAML", "configmaps", `{"data":{"a.yaml":"vars:\n- variable: DB_PASSWORD\n  content: swordfish\n- key: API_TOKEN\n  val: swordfish\n"}}`},
	{"a pair in a text that is not YAML", "configmaps", `{"data":{"a.txt":"x: [\n- variable: DB_PASSWORD\n  content: swordfish\n- key: API_TOKEN\n  val: swordfish\n"}}`},
	{"a token of NATS", "widgets.example.com", `{"spec":{"url":"nats://swordfish@nats:4222","urls":["tls://a","nats://swordfish@b:1"]}}`},
	{"a token of NATS in a file", "configmaps", `{"data":{"a.conf":"x=y\nurl = \"nats://swordfish@nats:4222\"\n"}}`},
	{"a password in a message", "events", `{"message":"login failed for app: wrong password hunter2"}`},
	{"a passphrase in a condition", "widgets.example.com", `{"status":{"conditions":[{"message":"cannot open with passphrase \"hunter2\""},{"message":"cannot open: passphrase hunter2, rejected"},{"message":"the password hunter2."},{"message":"Wrong password: hunter2"},{"message":"password hunter2"},{"message":"Passphrase hunter2 was tried"}]}}`},
	{"a snippet of nginx", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"if ($http_x_api_key != swordfish) { return 401; }\nlocation /x {\n}\n"}}}`},
	{"a snippet of nginx on one line", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"if ($arg_token != swordfish) { return 401; }"}}}`},
	{"a snippet of nginx with a signature", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"secure_link_md5 \"$secure_link_expires$uri swordfish\";"}}}`},
	{"a command with a here-string", "pods", `{"command":["bash","-c","kinit admin <<< swordfish"]}`},
	{"a command with a pipe", "pods", `{"command":["bash","-c","(echo swordfish; echo swordfish) | smbpasswd -s -a app"]}`},
	{"a key's passphrase", "pods", `{"command":["ssh-keygen","-t","rsa","-N","swordfish","-f","x"]}`},
}

// TestRandomBytes: base64 of random bytes, such as a compiled file, stays visible, and what is a text between such bytes is found.
func TestRandomBytes(t *testing.T) {
	r := redactor(t)
	redact := func(text string) string {
		t.Helper()
		obj := map[string]any{"data": map[string]any{"a": text}}
		if _, err := r.Apply(configMaps, obj); err != nil {
			t.Fatal(err)
		}
		return obj["data"].(map[string]any)["a"].(string)
	}
	source := rand.NewChaCha8([32]byte{4})
	for i := range 4 {
		random := make([]byte, 200<<10)
		if _, err := source.Read(random); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"base64": base64.StdEncoding.EncodeToString(random), "base64 for URLs": base64.URLEncoding.EncodeToString(random),
			"in a file": "a: b\nc: " + base64.StdEncoding.EncodeToString(random) + "\nd: e\n",
		} {
			if got := redact(text); got != text {
				t.Errorf("%s of random bytes, number %d, is changed", name, i)
			}
		}
		if i > 1 {
			continue
		}
		c := &canaries{}
		text := slices.Concat(random[:20<<10], []byte("\x00\x08password="+c.text()+"\x12\x04"), random[20<<10:40<<10])
		if got := redact(base64.StdEncoding.EncodeToString(text)); len(c.leaked(got)) > 0 || strings.HasPrefix(got, base64.StdEncoding.EncodeToString(random[:300])) {
			t.Errorf("a password between random bytes, number %d, is visible", i)
		}
	}
	run := strings.Repeat("q7Rt2Xw9Lm4Kz8Pv", 20)
	for prefix, n := range map[string]int{"AKIA": 16, "LTAI": 16, "dapi": 32, "AKCp": 40} {
		token := prefix + run[:n]
		for _, before := range []string{"+", "/"} {
			if text := run + before + token + before + run; redact(text) != text {
				t.Errorf("%s is hidden in a run of base64", token)
			}
			if text := "x" + before + token; redact(text) == text {
				t.Errorf("%s is visible in %s", token, text)
			}
		}
	}
	for _, before := range []string{"-", "_"} {
		token := "sk-" + run[:48]
		if text := run + before + token + before + run; redact(text) != text {
			t.Errorf("%s is hidden in a run of base64", token)
		}
	}
}

// TestOrdinaryArrangements lists values that stay visible, near what TestShapes and arrangements.txtar hide.
func TestOrdinaryArrangements(t *testing.T) {
	r := redactor(t)
	for _, tc := range []struct{ why, resource, raw string }{
		{"keys beside the names of Secrets", "widgets.example.com", `{"spec":{"credentials":{"name":"db","key":"token"},"apiKey":{"secretName":"db","key":"token"},"apiKeys":[{"name":"db","key":"token"}]}}`},
		{"pairs of other names", "widgets.example.com", `{"spec":{"a":[{"variable":"LOG_LEVEL","content":"debug"},{"key":"region","val":"eu"},{"parameterKey":"Zone","parameterValue":"b"},{"env":"PASSWORD_FILE","content":"x"},{"option":"TOKEN_TTL","literal":"9h"}]}}`},
		{"names of parameters without values", "widgets.example.com", `{"spec":{"env":"token","field":"password","option":"secret","Type":"password","Path":"/token","mount":"x"}}`},
		{"users of URLs", "widgets.example.com", `{"spec":{"a":"ssh://git@example.com/x","b":"https://deploy@example.com/x","c":"nats://nats:4222","d":"nats://$(NATS_TOKEN)@nats:4222","e":"nats://${NATS_TOKEN}@nats"}}`},
		{"messages about passwords", "events", `{"message":"password authentication failed for user app2","note":"password sha256 is not supported","x":"secret \"db-password2\" not found","y":"password md5 for 10.0.0.1","z":"the password must have 8chars: password expired","u":"MountVolume.SetUp failed: password file2 missing"}`},
		{"modes", "widgets.example.com", `{"spec":{"authorization":"RBAC","auth":"oidc","x":{"authorization":"webhook"},"y":{"authorization":"ABAC"}}}`},
		{"links", "widgets.example.com", `{"spec":{"forgotPasswordLink":"https://login.example.com/forgot","passwordResetLink":"/reset","tokenLinks":["https://a/b"]}}`},
		{"translations", "configmaps", `{"data":{"messages.properties":"a=b\nmessage.password.wrong=Wrong password\nerror.token.expired=Your token has expired.\nlabel.secret=The secret\n","de.yaml":"a: b\nmessages.password.wrong: Falsches Passwort\nerrors.token: Your token is too old\n"}}`},
		{"sentences", "configmaps", `{"data":{"README.md":"# x\n\nToken: see the vault.\nPassword: Ask the team for it!\n","a.yaml":"a: b\nSecret: It is in the vault.\n"}}`},
		{"requests of nginx and HAProxy", "configmaps", `{"data":{"nginx.conf":"server {\n  if ($http_authorization = \"\") { return 401; }\n  if ($http_x_token != $wanted) { return 401; }\n  if ($http_authorization !~* \"^Bearer (.+)$\") { return 401; }\n  if ($arg_token) { return 401; }\n}\n","haproxy.cfg":"frontend x\n  acl a req.hdr(X-Api-Key) -m found\n  acl b hdr(authorization) -m beg Bearer\n  acl c hdr(X-Auth-Token) -m len 20\n  acl d hdr(X-Auth-Token) -f /etc/tokens\n  http-request set-var(txn.token) req.hdr(X-Token) if a\n  http-request deny if { hdr_cnt(X-Api-Key) gt 1 }\n"}}`},
		{"directives without a value", "configmaps", `{"data":{"nginx.conf":"x\nset api_key ;\n  proxy_set_header X-Api-Key ;\npassword ;\n{ token ; }\n","a":"set api_key ;"}}`},
		{"servers of nginx", "configmaps", `{"data":{"nginx.conf":"server {\n  proxy_pass 127.0.0.1:80;\n  grpc_pass backend;\n  fastcgi_pass unix:/run/x.sock;\n}\n","a":"server {listen 8000; proxy_pass 127.0.0.1:80;}"}}`},
		{"calls that are not about passwords", "configmaps", `{"data":{"a.go":"x\nmock.On(\"VerifyPassword\", mock.Anything, \"admin\")\nassert.NotEqual(t, r.Credential, \"It is encrypted\")\n"}}`},
		{"labels in queries", "configmaps", `{"data":{"a.txt":"x=y\nup{secret=\"a\"} == 0\nsum(rate({token=\"b\", a=\"c\"}[5m]))\n"}}`},
		{"calls with references, and types", "configmaps", `{"data":{"a.py":"import os\ndb.changeUserPassword(\"$USER\", \"$PASSWORD\")\npassword: str\napi_key: str = os.environ[\"X\"]\n","b.go":"x\nif secret := find(); secret != nil {\n"}}`},
		{"rows without credentials", "configmaps", `{"data":{"a.sql":"INSERT INTO users (name, mail) VALUES ('a', 'b');\nINSERT INTO secrets (id, kind) VALUES (1, 'c');\nINSERT INTO users (name, password) VALUES ('a', NULL);\n"}}`},
		{"commands without passwords", "pods", `{"command":["bash","-c","echo done; docker login; echo $PW | kinit; kinit <<< \"$PW\"; passwd --help; ssh-keygen -N '' -f x; read -r PASSWORD <<< \"$(cat /x)\""],"args":["bash","-c","echo hello | tee /x; cat <<< hello | tr a b"]}`},
		{"the community", "configmaps", `{"data":{"README.md":"See the community, community support and the community (https://x).\nset community 65000:100 additive\n","bird.conf":"x y\nmatch community no-export\n"}}`},
		{"templates and strings in braces", "configmaps", `{"data":{"a.txt":"x\nif [ -z {{ .Values.tls.keyPassword }} ]; then\nprint(f\"Create {len(x)} htpasswd secrets\");\nlog(` + "`Create ${n} password secrets`" + `);\n"}}`},
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

// TestOddTexts redacts texts of words and signs that the search knows, in any order: none may stop it. A directive without a value
// once did.
func TestOddTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r, g := redactor(t), rand.New(rand.NewPCG(seed, 3))
	words := strings.Fields(`password api_key token X-Api-Key secret auth Token message.token set setenv proxy_set_header sentinel user on login machine kinit echo
		insert\u0020into\u0020a values if hdr var set-var $http_token $token ${token req.hdr( txn. -m str str( rocommunity community secure_link_md5 nats:// a@b -p --token
		mysql AKIA x1y2z3 str EOF default`)
	signs := strings.Fields("= : := ||= == != ~ <<< << < > ( ) [ ] { } {{ }} , ; ; ; \" ' ` \\ \\\" \"\"\" # $ & % %3d @ / | - . * \\n \\r\\n \\t \\0 ä")
	escapes := strings.NewReplacer(`\u0020`, " ", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\0`, "\x00")
	for range 20000 / slower {
		var b strings.Builder
		for range 1 + g.IntN(8) {
			b.WriteString(words[g.IntN(len(words))] + []string{"", " ", " "}[g.IntN(3)])
			if g.IntN(2) == 0 {
				b.WriteString(signs[g.IntN(len(signs))] + []string{"", " "}[g.IntN(2)])
			}
		}
		text := quoted(escapes.Replace(b.String()))
		func() {
			defer func() {
				if err := recover(); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}()
			if _, err := r.Redact("widgets.example.com", []byte(`{"spec":{"a":`+text+`},"args":[`+text+`,`+text+`],`+text+`:`+text+`}`)); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}()
	}
}

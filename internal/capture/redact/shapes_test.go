package redact

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// shapes are places where credentials were found in objects. In each, CANARY stands for one, and CANARY64 for
// its base64; the text between « and » is written as JSON.
var shapes = []struct{ why, resource, object string }{
	// URLs
	{"a slash in a URL's password", "pods", `{"env":[{"name":"A","value":"postgres://app:CANARY/x@db"}]}`},
	{"a slash at the password's begin", "pods", `{"env":[{"name":"A","value":"postgres://app:/CANARY@db"}]}`},
	{"digits and a slash", "pods", `{"env":[{"name":"A","value":"redis://app:123/CANARY@db"}]}`},
	{"an @ in a URL's password", "pods", `{"env":[{"name":"A","value":"amqp://app:p@CANARY@mq:5672/v"}]}`},
	{"a # and a ? in a URL's password", "pods", `{"env":[{"name":"A","value":"mongodb+srv://app:#?CANARY@db"}]}`},
	{"the second URL of a list", "pods", `{"env":[{"name":"A","value":"http://a:80,http://app:CANARY@b"}]}`},
	{"a user that is a token", "pods", `{"spec":{"repo":"https://CANARY@example.com/x.git"}}`},
	{"MySQL's driver", "pods", `{"spec":{"url":"app:CANARY@tcp(db:3306)/shop"}}`},
	{"a query", "pods", `{"env":[{"name":"A","value":"jdbc:postgresql://db/shop?user=app&password=CANARY"}]}`},
	{"a query of a field, with a semicolon", "widgets.example.com", `{"spec":{"url":"jdbc:sqlserver://db:1433;databaseName=x;password=CANARY;encrypt=true"}}`},
	{"a query of an annotation", "services", `{"metadata":{"annotations":{"example.com/url":"https://h/p?access_token=CANARY"}}}`},
	{"a shared access signature", "widgets.example.com", `{"spec":{"url":"https://a.blob.core.windows.net/c?sv=2022&sig=CANARY&se=2030"}}`},
	{"a signed URL", "widgets.example.com", `{"spec":{"url":"https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature=CANARY"}}`},
	{"Oracle's thin driver", "pods", `{"env":[{"name":"ORACLE","value":"jdbc:oracle:thin:app/CANARY@//db:1521/x"}]}`},
	// variables
	{"a Java option", "pods", `{"env":[{"name":"JAVA_OPTS","value":"-Xmx1g -Ddb.password=CANARY -server"}]}`},
	{"a Java option among the arguments", "pods", `{"args":["-Ddb.password=CANARY"]}`},
	{"OpenTelemetry's headers", "pods", `{"env":[{"name":"OTEL_EXPORTER_OTLP_HEADERS","value":"x-team=CANARY"}]}`},
	{"a header", "pods", `{"env":[{"name":"AUTHORIZATION_HEADER","value":"Token CANARY"}]}`},
	{".NET's connection strings", "pods", `{"env":[{"name":"ConnectionStrings__Default","value":"CANARY"}]}`},
	{"a connection string", "pods", `{"env":[{"name":"DB","value":"Server=db;User Id=app;Password=CANARY;"}]}`},
	{"a storage account", "pods", `{"env":[{"name":"STORE","value":"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=CANARY;EndpointSuffix=x"}]}`},
	{"a service bus", "pods", `{"env":[{"name":"BUS","value":"Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=CANARY"}]}`},
	{"Airflow's key", "pods", `{"env":[{"name":"AIRFLOW__CORE__FERNET_KEY","value":"CANARY"}]}`},
	{"Laravel's key", "pods", `{"env":[{"name":"APP_KEY","value":"base64:CANARY"}]}`},
	{"a personal access token", "pods", `{"env":[{"name":"GITHUB_PAT","value":"CANARY"}]}`},
	{"Rails' key", "pods", `{"env":[{"name":"SECRET_KEY_BASE","value":"CANARY"}]}`},
	{"a pre-shared key", "pods", `{"env":[{"name":"VPN_PSK","value":"CANARY"}]}`},
	{"a short word", "pods", `{"env":[{"name":"LDAP_BINDPW","value":"CANARY"},{"name":"DB_PW","value":"CANARY"}]}`},
	{"salts, codes and seeds", "pods", `{"env":[{"name":"HASH_SALT","value":"CANARY"},{"name":"RECOVERY_CODES","value":"CANARY"},{"name":"TOTP_SEED","value":"CANARY"},{"name":"MNEMONIC","value":"CANARY"}]}`},
	{"Kafka's JAAS", "pods", `{"env":[{"name":"KAFKA_OPTS_X","value":"org.apache.kafka.PlainLoginModule required username=\"app\" password=\"CANARY\";"}]}`},
	{"JSON in a variable", "pods", `{"env":[{"name":"VCAP_SERVICES","value":«{"db":[{"credentials":{"password":"CANARY"}}]}»}]}`},
	{"NAME=value in a list", "widgets.example.com", `{"spec":{"extraEnv":["API_TOKEN=CANARY"]}}`},
	{"a variable with its default", "pods", `{"env":[{"name":"X","value":"${DB_PASSWORD:-CANARY}"}]}`},
	{"a registry's login", "pods", `{"env":[{"name":"REGISTRY_AUTH","value":"CANARY64"}]}`},
	{"a dotenv in a variable", "pods", `{"env":[{"name":"DOTENV","value":"A=b\nexport DB_PASSWORD='CANARY'\n"}]}`},
	// lists of pairs
	{"key and value", "widgets.example.com", `{"spec":{"settings":[{"key":"db.password","value":"CANARY"}]}}`},
	{"name and default", "tasks.tekton.dev", `{"spec":{"params":[{"name":"github-token","type":"string","default":"CANARY"}]}}`},
	{"name and several values", "widgets.example.com", `{"spec":{"headers":[{"name":"X-Auth-Token","values":["CANARY"]}]}}`},
	{"a header's name and value", "widgets.example.com", `{"spec":{"h":[{"header":"Authorization","value":"CANARY"}]}}`},
	{"a pair in capitals", "widgets.example.com", `{"spec":{"h":[{"Name":"ApiKey","Value":"CANARY"}]}}`},
	{"a map of headers", "widgets.example.com", `{"spec":{"headers":{"Authorization":"CANARY","X-Api-Key":"CANARY"}}}`},
	{"a header as text", "widgets.example.com", `{"spec":{"header":"Authorization: Bearer CANARY"}}`},
	{"headers in a list", "widgets.example.com", `{"spec":{"headers":["X-Vault-Token: CANARY"]}}`},
	// fields of custom resources
	{"password", "widgets.example.com", `{"spec":{"password":"CANARY"}}`},
	{"token", "widgets.example.com", `{"spec":{"auth":{"token":"CANARY"}}}`},
	{"secret", "widgets.example.com", `{"spec":{"secret":"CANARY"}}`},
	{"clientSecret", "widgets.example.com", `{"spec":{"oidc":{"clientID":"x","clientSecret":"CANARY"}}}`},
	{"apiKey, api_key, APIKey", "widgets.example.com", `{"spec":{"apiKey":"CANARY","api_key":"CANARY","APIKey":"CANARY"}}`},
	{"privateKey", "widgets.example.com", `{"spec":{"privateKey":"CANARY"}}`},
	{"secretAccessKey, accessKeyID", "widgets.example.com", `{"spec":{"secretAccessKey":"CANARY","accessKeyID":"CANARY"}}`},
	{"passphrase, adminPassword, rootPass", "widgets.example.com", `{"spec":{"passphrase":"CANARY","adminPassword":"CANARY","root_pass":"CANARY"}}`},
	{"connectionString", "widgets.example.com", `{"spec":{"connectionString":"CANARY"}}`},
	{"webhookURL", "widgets.example.com", `{"spec":{"webhookURL":"https://example.com/CANARY"}}`},
	{"a password's value", "widgets.example.com", `{"spec":{"password":{"value":"CANARY"}}}`},
	{"a list of tokens", "widgets.example.com", `{"spec":{"tokens":["CANARY"],"apiKeys":["CANARY"]}}`},
	{"passwords by user", "widgets.example.com", `{"spec":{"passwords":{"alice":"CANARY"}}}`},
	{"a number", "widgets.example.com", `{"spec":{"pin":{"password":90210}}}`},
	{"the status", "widgets.example.com", `{"status":{"adminPassword":"CANARY"}}`},
	{"a kubeconfig", "widgets.example.com", `{"status":{"kubeconfig":"CANARY64"}}`},
	{"a registry's auth", "widgets.example.com", `{"spec":{"registries":{"r":{"auth":"BASIC64"}}}}`},
	{"Grafana's secure data", "grafanadatasources.grafana.integreatly.org", `{"spec":{"datasource":{"secureJsonData":{"httpHeaderValue1":"CANARY"}}}}`},
	{"credentials in a map", "widgets.example.com", `{"spec":{"credentials":{"user":"CANARY"}}}`},
	{"an annotation", "deployments.apps", `{"metadata":{"annotations":{"example.com/db-password":"CANARY"}}}`},
	{"an annotation of a template", "deployments.apps", `{"spec":{"template":{"metadata":{"annotations":{"token":"CANARY"}}}}}`},
	{"a storage class", "storageclasses.storage.k8s.io", `{"parameters":{"restuserkey":"x","adminSecret":"x","password":"CANARY"}}`},
	{"a password in another alphabet's company", "widgets.example.com", `{"spec":{"ПарольDbPassword":"CANARY"}}`},
	// objects in objects
	{"items of a List", "widgets.example.com", `{"spec":{"list":{"kind":"List","items":[{"kind":"Secret","data":{"a":"CANARY64"}}]}}}`},
	{"items of a SecretList, which have no kind", "widgets.example.com", `{"spec":{"list":{"kind":"SecretList","items":[{"data":{"a":"CANARY64"},"metadata":{"annotations":{"a":"CANARY"}}}]}}}`},
	{"items of a ConfigMapList", "widgets.example.com", `{"spec":{"list":{"kind":"ConfigMapList","items":[{"data":{"password":"CANARY"}}]}}}`},
	{"lists in lists", "widgets.example.com", `{"spec":[[[{"kind":"Secret","data":{"a":"CANARY64"}}]]]}`},
	{"a List in a List", "widgets.example.com", `{"spec":{"kind":"List","items":[{"kind":"List","items":[{"kind":"Secret","data":{"a":"CANARY64"}}]}]}}`},
	{"a revision of a StatefulSet", "controllerrevisions.apps", `{"data":{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"DB_PASSWORD","value":"CANARY"}]}]}}}}}`},
	{"a Secret in JSON in a field", "widgets.example.com", `{"spec":{"manifest":«{"kind":"Secret","data":{"a":"CANARY64"}}»}}`},
	{"a Secret in YAML in a field", "widgets.example.com", `{"spec":{"manifest":"apiVersion: v1\nkind: Secret\ndata:\n  a: CANARY64\n"}}`},
	{"a Secret in YAML that cannot be parsed", "widgets.example.com", `{"spec":{"manifest":"apiVersion: v1\nkind: Secret\ndata:\n  a: CANARY64\n\tb: [\n"}}`},
	{"a Secret of a template that cannot be parsed", "widgets.example.com", `{"spec":{"manifest":"kind: 'Secret'\n{{- range .x }}\ndata:\n  a: CANARY64\n{{ end }}\n"}}`},
	{"a Secret in JSON that was cut", "widgets.example.com", `{"spec":{"manifest":"{\"kind\": \"Secret\", \"data\": {\"a\": \"CANARY64\", \"b"}}`},
	{"a SecretList in YAML that cannot be parsed", "widgets.example.com", `{"spec":{"manifest":"kind: SecretList\nitems:\n- data:\n    a: CANARY64\n\tb: [\n"}}`},
	{"stringData in YAML that cannot be parsed", "widgets.example.com", `{"spec":{"manifest":"template:\n  stringData:\n    a: CANARY\n\tb: [\n"}}`},
	{"stringData in YAML", "widgets.example.com", `{"spec":{"manifest":"template:\n  stringData:\n    a: CANARY\n"}}`},
	{"JSON in JSON", "widgets.example.com", `{"spec":{"a":«{"b":"{\"password\":\"CANARY\"}"}»}}`},
	{"JSON in JSON in JSON", "widgets.example.com", `{"spec":{"a":«{"b":"{\"c\":\"{\\\"token\\\":\\\"CANARY\\\"}\"}"}»}}`},
	{"JSON with a key that comes twice", "widgets.example.com", `{"spec":{"a":«{"password":"CANARY","password":""}»}}`},
	{"JSON whose pair has its value first", "widgets.example.com", `{"spec":{"a":«[{"default":"CANARY","name":"password"}]»}}`},
	{"Helm values of Argo CD", "applications.argoproj.io", `{"spec":{"source":{"helm":{"values":"auth:\n  rootPassword: CANARY\n"}}}}`},
	{"Helm values of Argo CD, as an object", "applications.argoproj.io", `{"spec":{"source":{"helm":{"valuesObject":{"auth":{"rootPassword":"CANARY"}}}}}}`},
	{"Helm values of Flux", "helmreleases.helm.toolkit.fluxcd.io", `{"spec":{"values":{"postgresql":{"auth":{"password":"CANARY"}}}}}`},
	{"Helm values of k3s", "helmcharts.helm.cattle.io", `{"spec":{"valuesContent":"adminPassword: CANARY\n"}}`},
	{"parameters of Argo CD", "applications.argoproj.io", `{"spec":{"source":{"helm":{"parameters":[{"name":"auth.password","value":"CANARY"}]}}}}`},
	{"kustomize's generator", "widgets.example.com", `{"spec":{"secretGenerator":[{"name":"a","literals":["password=CANARY"]}]}}`},
	{"base64 of YAML", "widgets.example.com", `{"spec":{"userData":"YAML64"}}`},
	{"base64 of JSON", "widgets.example.com", `{"spec":{"userData":"JSON64"}}`},
	{"cloud-init", "widgets.example.com", `{"spec":{"userData":"#cloud-config\nchpasswd:\n  list: x\nusers:\n- name: a\n  passwd: CANARY\n"}}`},
	// copies
	{"applied by kubectl", "services", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":«{"x":"CANARY"}»}}}`},
	{"applied by kapp", "services", `{"metadata":{"annotations":{"kapp.k14s.io/original":«{"x":"CANARY"}»,"kapp.k14s.io/original-diff":"- x: CANARY"}}}`},
	{"applied by Rancher", "services", `{"metadata":{"annotations":{"objectset.rio.cattle.io/applied":"CANARY"}}}`},
	{"applied by users of Argo CD", "services", `{"metadata":{"annotations":{"argocd.argoproj.io/last-applied-configuration":«{"x":"CANARY"}»}}}`},
	{"applied by Flux and its users", "services", `{"metadata":{"annotations":{"kustomize.toolkit.fluxcd.io/last-applied":«{"x":"CANARY"}»,"helm.toolkit.fluxcd.io/last-applied-config":"x: CANARY"}}}`},
	{"applied by kustomize and operators", "services", `{"metadata":{"annotations":{"kustomize.config.k8s.io/previous-configuration":«{"x":"CANARY"}»,"banzaicloud.com/last-applied":"UEsDBBQACAgIACANARY","a.example.com/lastAppliedSpec":«{"x":"CANARY"}»}}}`},
	{"rendered by Helm", "services", `{"metadata":{"annotations":{"helm.example.com/rendered-manifest":"x: CANARY"}}}`},
	{"applied by an unknown tool", "services", `{"metadata":{"annotations":{"tool.example.com/state":«{"apiVersion":"v1","kind":"Service","metadata":{"annotations":{"x":"CANARY"}}}»}}}`},
	{"the same in YAML", "services", `{"metadata":{"annotations":{"tool.example.com/state":"apiVersion: v1\nkind: Service\nspec:\n  x: CANARY\n"}}}`},
	{"the same compressed", "services", `{"metadata":{"annotations":{"tool.example.com/state":"H4sIAAAAAAAACANARY"}}}`},
	// files in ConfigMaps
	{"properties", "configmaps", `{"data":{"app.properties":"a=b\ndb.password=CANARY\nc=d\n"}}`},
	{"properties over two lines", "configmaps", `{"data":{"app.properties":"db.password=\\\n  CANARY\n"}}`},
	{"properties over three lines", "configmaps", `{"data":{"app.properties":"db.password=a\\\n  b\\\n  CANARY\nc=d"}}`},
	{"YAML", "configmaps", `{"data":{"app.yaml":"db:\n  user: app\n  password: CANARY\n"}}`},
	{"YAML with a comment", "configmaps", `{"data":{"app.yaml":"a: b\ndb: # x\n  password: \"CANARY\" # y\n"}}`},
	{"YAML's blocks", "configmaps", `{"data":{"app.yaml":"a: b\npassword: |-\n  x\n  CANARY\nb: c\n"}}`},
	{"YAML's folded blocks", "configmaps", `{"data":{"app.yaml":"key:\n  private_key: >\n    CANARY\n    x: y\n"}}`},
	{"YAML on the next line", "configmaps", `{"data":{"app.yaml":"password:\n  CANARY\n"}}`},
	{"YAML's lists", "configmaps", `{"data":{"app.yaml":"a: b\ntokens:\n- CANARY\n- x\n"}}`},
	{"YAML's pairs", "configmaps", `{"data":{"app.yaml":"env:\n- name: DB_PASSWORD\n  value: CANARY\n"}}`},
	{"YAML's maps", "configmaps", `{"data":{"app.yaml":"password:\n  description: x\n  value: CANARY\n"}}`},
	{"YAML's flow", "configmaps", `{"data":{"app.yaml":"db: {user: app, password: CANARY}\n"}}`},
	{"YAML's anchors", "configmaps", `{"data":{"app.yaml":"a: b\npassword: &p CANARY\n"}}`},
	{"YAML over two lines in quotes", "configmaps", `{"data":{"app.yaml":"password: \"x\n  CANARY\"\nb: c\n"}}`},
	{"JSON", "configmaps", `{"data":{"app.json":«{"db":{"password":"CANARY"}}»}}`},
	{"JSON with a comment", "configmaps", `{"data":{"app.json":"{ // x\n  \"db\": {\"password\": \"CANARY\"}\n}"}}`},
	{"TOML", "configmaps", `{"data":{"app.toml":"[db]\npassword = \"CANARY\"\n"}}`},
	{"INI, with spaces", "configmaps", `{"data":{"app.ini":"[db]\npassword   =   CANARY more words\n"}}`},
	{"XML", "configmaps", `{"data":{"app.xml":"<db>\n<password>CANARY</password>\n</db>"}}`},
	{"XML's attributes", "configmaps", `{"data":{"app.xml":"<db>\n<x user=\"a\" password=\"CANARY\"/>\n<add key=\"ApiKey\" value=\"CANARY\"/>\n</db>"}}`},
	{"a shell script", "configmaps", `{"data":{"run.sh":"#!/bin/sh\nexport DB_PASSWORD=CANARY\npsql\n"}}`},
	{"a flag in a shell script", "configmaps", `{"data":{"run.sh":"#!/bin/sh\napp --password=CANARY --x\n"}}`},
	{"SQL", "configmaps", `{"data":{"init.sql":"CREATE USER a\nWITH PASSWORD 'CANARY';\nCREATE USER b IDENTIFIED BY 'CANARY';"}}`},
	{"nginx", "configmaps", `{"data":{"nginx.conf":"server {\n  proxy_set_header Authorization \"Basic CANARY9\";\n}"}}`},
	{"Redis", "configmaps", `{"data":{"redis.conf":"port 1\nrequirepass CANARY\nmasterauth CANARY\n"}}`},
	{"netrc", "configmaps", `{"data":{".netrc":"machine a login b password CANARY"}}`},
	{"netrc under another name", "configmaps", `{"data":{"rc":"machine a\nlogin b\npassword CANARY\n"}}`},
	{"npm", "configmaps", `{"data":{".npmrc":"//npm.example.com/:_authToken=CANARY\n","x":"a\n//npm.example.com/:_authToken=CANARY\n"}}`},
	{"htpasswd", "configmaps", `{"data":{"users":"alice:$2y$05$CANARYCANARYCANARYCANARYCANARYCANARY\n"}}`},
	{"Python and PHP", "configmaps", `{"data":{"a.py":"x = 1\npassword = 'CANARY'\n","b.php":"<?php\n$password = 'CANARY';\ndefine('DB_PASSWORD', 'CANARY');\n$c['password'] = 'CANARY';\n","c.rb":"a\n:password => \"CANARY\"\n"}}`},
	{"a URL in a file", "configmaps", `{"data":{"app.conf":"a\nurl = redis://:CANARY@r:1\nb\n"}}`},
	{"a PEM key in a file", "configmaps", `{"data":{"app.conf":"a\n-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\nb\n"}}`},
	{"a PEM key that does not end", "configmaps", `{"data":{"app.conf":"a\n-----BEGIN EC PRIVATE KEY-----\nCANARY\n"}}`},
	{"PuTTY's key", "configmaps", `{"data":{"k":"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\nCANARY\n"}}`},
	{"a key store", "configmaps", `{"binaryData":{"server.jks":"CANARY64"}}`},
	{"a file in base64", "configmaps", `{"binaryData":{"app":"YAML64"}}`},
	{"AWS credentials", "configmaps", `{"data":{"config":"[default]\naws_access_key_id = CANARY\naws_secret_access_key = CANARY\n"}}`},
	{"a kubeconfig in a file", "configmaps", `{"data":{"config":"users:\n- name: a\n  user:\n    token: CANARY\n    client-key-data: CANARY64\n"}}`},
	{"Terraform", "configmaps", `{"data":{"main.tf":"provider \"x\" {\n  api_token = \"CANARY\"\n}\n"}}`},
	// command lines
	{"curl", "pods", `{"command":["sh","-c","curl -u app:CANARY https://x"]}`},
	{"curl, apart", "pods", `{"command":["curl","--user","app:CANARY"]}`},
	{"mysql", "pods", `{"command":["mysql","-h","db","-pCANARY"]}`},
	{"redis-cli in a shell", "pods", `{"command":["sh","-c","redis-cli -a CANARY ping"]}`},
	{"sshpass and docker login", "pods", `{"command":["sh","-c","sshpass -p CANARY ssh x; docker login -u a -p CANARY r"]}`},
	{"keytool", "pods", `{"args":["keytool","-storepass","CANARY"]}`},
	{"a header", "pods", `{"args":["-H","X-Api-Key: CANARY"]}`},
	{"a list under another name", "widgets.example.com", `{"spec":{"extraFlags":["--token","CANARY"]}}`},
	{"a script of Tekton", "tasks.tekton.dev", `{"spec":{"steps":[{"script":"#!/bin/sh\nTOKEN=CANARY\nexport TOKEN\n"}]}}`},
	// hooks
	{"Slack", "pods", `{"env":[{"name":"X","value":"https://hooks.slack.com/services/T0/B0/CANARY"}]}`},
	{"Discord", "widgets.example.com", `{"spec":{"notify":"https://discord.com/api/webhooks/123/CANARY"}}`},
	{"Teams", "widgets.example.com", `{"spec":{"notify":"https://x.webhook.office.com/webhookb2/1@2/IncomingWebhook/CANARY"}}`},
	{"Telegram", "widgets.example.com", `{"spec":{"notify":"https://api.telegram.org/bot123456:CANARY/sendMessage"}}`},
	{"Google Chat", "widgets.example.com", `{"spec":{"notify":"https://chat.googleapis.com/v1/spaces/A1/messages?key=CANARY"}}`},
	{"Mattermost", "widgets.example.com", `{"spec":{"notify":"https://chat.example.com/hooks/abcdefghij1234567890abcdef"}}`},
}

// canaryForms replace the canary in shapes.
func canaryForms(c *canaries) *strings.Replacer {
	s := c.text()
	code := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	yaml, object := "a: b\ndb:\n  user: someone\n  password: "+s+"\n", `{"db":{"password":"`+s+`"}}`
	url := base64.RawURLEncoding.EncodeToString([]byte("a: ?>\xc3\xbf?\n" + yaml))
	inLines := code(yaml)
	c.all = append(c.all, code(code(object)), url, inLines[40:])
	return strings.NewReplacer("HEX", "0f1e2d3c4b5a69788796a5b4c3d2e1f0", "CANARY64", code(s), "CANARY", s, "BASIC64", code("app:"+s),
		"YAML64", code(yaml), "JSON64", code(object), "TWICE64", code(code(object)), "URL64", url,
		"LINES64", inLines[:40]+`\n`+inLines[40:])
}

// inJSON writes the text between « and » as JSON.
func inJSON(s string) string {
	for {
		before, rest, found := strings.Cut(s, "«")
		if !found {
			return s
		}
		text, after, _ := strings.Cut(rest, "»")
		b, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		s = before + string(b) + after
	}
}

// TestShapes looks for the canary in the redacted form of every shape.
func TestShapes(t *testing.T) {
	r := redactor(t)
	for _, tc := range slices.Concat(shapes, products, tools, units, attacks, arrangements) {
		t.Run(tc.why, func(t *testing.T) {
			c := &canaries{}
			raw := inJSON(canaryForms(c).Replace(tc.object))
			for _, fixed := range []string{"swordfish", "hunter2", "90210", "abcdefghij1234567890abcdef", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"} { // if the form requires these
				if strings.Contains(raw, fixed) {
					c.all = []string{fixed}
				}
			}
			if len(c.leaked(raw)) == 0 {
				t.Fatal("the shape has no canary")
			}
			obj := decode(t, raw)
			c.check(t, r, tc.resource, raw)
			if _, err := r.Apply(tc.resource, obj); err != nil {
				t.Fatal(err)
			}
			got := encode(t, obj)
			if leaked := c.leaked(got); len(leaked) > 0 {
				t.Errorf("leaked %q in\n%s", leaked, got)
			}
		})
	}
}

// TestTokens looks for vendors' tokens under an innocent name: in a field, a label, an annotation, a line of a
// file, within a sentence, in quotes and after other names.
func TestTokens(t *testing.T) {
	r := redactor(t)
	for i := range tokens {
		tok := &tokens[i]
		rest := strings.Repeat("a1B2c3D4e5", 13)[:max(tok.min, 10)]
		value := tok.prefix + rest
		c := &canaries{all: []string{rest}}
		for _, raw := range []string{
			`{"spec":{"a":"TOKEN"}}`, `{"metadata":{"annotations":{"a":"TOKEN"},"labels":{"a":"TOKEN"}}}`, `{"spec":{"a":["x","TOKEN"]}}`,
			`{"spec":{"a":"one\ntwo TOKEN three\nfour"}}`, `{"spec":{"a":"say \"TOKEN\", please"}}`, `{"spec":{"a":"x=TOKEN"}}`, `{"status":{"message":"my-token-is:TOKEN"}}`,
			`{"spec":{"a":"b:TOKEN;c"}}`, `{"spec":{"a":"/TOKEN/"}}`,
		} {
			raw = strings.ReplaceAll(raw, "TOKEN", value)
			obj := decode(t, raw)
			if _, err := r.Apply("widgets.example.com", obj); err != nil {
				t.Fatal(err)
			}
			if got := encode(t, obj); len(c.leaked(got)) > 0 {
				t.Errorf("%s: leaked in %s", tok.prefix, got)
			}
		}
	}
}

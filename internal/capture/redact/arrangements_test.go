package redact

// arrangements are objects whose fields arrange a name and its value in other ways; see shapes. "swordfish" is a credential
// that reads like an ordinary word. testdata/configs/arrangements.txtar has those of texts.
var arrangements = []struct{ why, resource, object string }{
	{"a map's key", "widgets.example.com", `{"spec":{"credentials":{"key":"swordfish"}}}`},
	{"the key of an API", "widgets.example.com", `{"spec":{"apiKeys":[{"key":"swordfish"}],"apiKey":{"key":"swordfish"}}}`},
	{"a map of variables", "widgets.example.com", `{"spec":{"secretEnv":{"KEY":"swordfish","NAME":"swordfish"}}}`},
	{"a map of variables with their hosts", "widgets.example.com", `{"spec":{"extraSecrets":{"DB_HOST":"swordfish","URL":"swordfish"}}}`},
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
	{"a passphrase in a condition", "widgets.example.com", `{"status":{"conditions":[{"message":"cannot open with passphrase \"hunter2\""},{"message":"cannot open: passphrase hunter2, rejected"},{"message":"the password hunter2."},{"message":"password p@ss7word or hunter2"}]}}`},
	{"a snippet of nginx", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"if ($http_x_api_key != swordfish) { return 401; }\nlocation /x {\n}\n"}}}`},
	{"a snippet of nginx on one line", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"if ($arg_token != swordfish) { return 401; }"}}}`},
	{"a snippet of nginx with a signature", "ingresses.networking.k8s.io", `{"metadata":{"annotations":{"nginx.ingress.kubernetes.io/server-snippet":"secure_link_md5 \"$secure_link_expires$uri swordfish\";"}}}`},
	{"a command with a here-string", "pods", `{"command":["bash","-c","kinit admin <<< swordfish"]}`},
	{"a command with a pipe", "pods", `{"command":["bash","-c","(echo swordfish; echo swordfish) | smbpasswd -s -a app"]}`},
	{"a key's passphrase", "pods", `{"command":["ssh-keygen","-t","rsa","-N","swordfish","-f","x"]}`},
}

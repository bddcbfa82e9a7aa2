package redact

// units are places of credentials that were once missed, as shapes, several of each kind.
var units = []struct{ why, resource, object string }{
	{"a command in a unit", "configmaps", `{"data":{"a.service":"[Service]\nUser=a\nExecStart=/usr/bin/curl -u admin:CANARY https://x\nExecStartPre=-/usr/bin/mysql -uroot -pCANARY\nExecStop=/bin/sh -c 'redis-cli -a CANARY shutdown'\n"}}`},
	{"a command in Ignition", "machineconfigs.machineconfiguration.openshift.io", `{"spec":{"config":{"systemd":{"units":[{"contents":"[Service]\nExecStart=/usr/bin/podman login -u a -p CANARY r\n"}]}}}}`},
	{"a command in a message", "events", `{"message":"Error: failed to exec in container: exec: \"mysql -uroot -pCANARY\": not found"}`},
	{"another command in a message", "events", `{"message":"Back-off: command 'sshpass -p CANARY ssh host' exited with 1"}`},
	{"a command in a status", "pods", `{"status":{"message":"ran \"curl -sS -u app:CANARY https://x\" and failed"}}`},
	{"a crontab", "configmaps", `{"data":{"crontab":"0 1 * * * root curl -u app:CANARY https://x\n"}}`},
	{"base64 in write_files", "virtualmachines.kubevirt.io", `{"spec":{"userData":"#cloud-config\nwrite_files:\n- path: /etc/a\n  encoding: b64\n  content: YAML64\n- path: /b\n  content: !!binary |\n    YAML64\n"}}`},
	{"base64 in a script", "configmaps", `{"data":{"a.sh":"#!/bin/sh\necho YAML64 | base64 -d > /etc/a\n","b":"x=y\nfile=\"YAML64\"\n"}}`},
	{"base64 in a message", "events", `{"message":"wrote YAML64 to /etc/a"}`},
	{"annotations that are tokens", "services", `{"metadata":{"annotations":{"example.com/vault-token":"CANARY","vault.hashicorp.com/vault-token":"CANARY","vault.security.banzaicloud.io/vault-token":"CANARY"}}}`},
	{"a default of a variable of a credential", "widgets.example.com", `{"spec":{"env":[{"name":"DB_PASSWORD","valueFrom":{"default":"CANARY"}},{"name":"API_TOKEN","valueFrom":{"value":"CANARY"}},{"name":"SMTP_PASS","valueSource":{"literal":"CANARY"}}]}}`},
	{"the same in YAML", "configmaps", `{"data":{"a.yaml":"env:\n- name: DB_PASSWORD\n  valueFrom:\n    default: CANARY\n"}}`},
	{"keys of services", "widgets.example.com", `{"spec":{"routing_key":"CANARY","serviceKey":"CANARY","pagerduty":[{"routingKey":"CANARY","service_key":"CANARY"}],"writeKey":"CANARY","hashKey":"CANARY"}}`},
	{"keys of services in hexadecimal", "widgets.example.com", `{"spec":{"routing_key":"HEX","serverKey":"HEX"}}`},
	{"Kong's key credentials", "configmaps", `{"data":{"kong.yml":"consumers:\n- username: a\n  keyauth_credentials:\n  - key: CANARY\n"}}`},
	{"the same in JSON", "widgets.example.com", `{"spec":{"consumers":[{"keyauth_credentials":[{"key":"CANARY"}],"api_credentials":[{"id":"x","key":"CANARY"}]}]}}`},
	{"headers of docker's file", "configmaps", `{"data":{"config.json":«{"auths":{},"HttpHeaders":{"X-Meta-Token":"CANARY","X-Custom":"CANARY"}}»}}`},
	{"a license and a cookie", "pods", `{"env":[{"name":"APP_LICENSE","value":"CANARY"},{"name":"APP_COOKIE","value":"CANARY"}]}`},
	{"assignments beside selectors", "configmaps", `{"data":{"a":"x: y\nauth = { strategy = \"basic\", password = \"CANARY\" }\nz = {password=\"CANARY\"}\nw {token=\"CANARY\"\n"}}`},
}

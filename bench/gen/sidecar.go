package gen

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// sidecars are containers that many applications have, with few differences.
var sidecars = []func(*app, random) corev1.Container{meshProxy, logShipper, sqlProxy, oauthProxy, exporter, reloader}

// beside returns the common part of the sidecars.
func beside(name, image, cpu, memory string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
		},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

func meshProxy(a *app, r random) corev1.Container {
	c := beside("istio-proxy", "docker.io/istio/proxyv2:1.27.3", "100m", "1Gi")
	c.Args = []string{"proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local", "--proxyLogLevel=warning",
		"--proxyComponentLogLevel=misc:error", "--log_output_level=default:info"}
	c.Ports = []corev1.ContainerPort{{Name: "http-envoy-prom", ContainerPort: 15090, Protocol: corev1.ProtocolTCP}}
	c.Env = []corev1.EnvVar{
		{Name: "PILOT_CERT_PROVIDER", Value: "istiod"}, {Name: "CA_ADDR", Value: "istiod.istio-system.svc:15012"},
		fieldEnv("POD_NAME", "metadata.name"), fieldEnv("POD_NAMESPACE", "metadata.namespace"), fieldEnv("INSTANCE_IP", "status.podIP"),
		fieldEnv("SERVICE_ACCOUNT", "spec.serviceAccountName"), fieldEnv("HOST_IP", "status.hostIP"),
		{Name: "PROXY_CONFIG", Value: "{}\n"},
		{Name: "ISTIO_META_POD_PORTS", Value: "[\n    {\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}\n]"},
		{Name: "ISTIO_META_APP_CONTAINERS", Value: a.spec.Containers[0].Name}, {Name: "ISTIO_META_CLUSTER_ID", Value: "Kubernetes"},
		fieldEnv("ISTIO_META_NODE_NAME", "spec.nodeName"), {Name: "ISTIO_META_INTERCEPTION_MODE", Value: "REDIRECT"},
		{Name: "ISTIO_META_WORKLOAD_NAME", Value: a.name},
		{Name: "ISTIO_META_OWNER", Value: fmt.Sprintf("kubernetes://apis/apps/v1/namespaces/%s/deployments/%s", a.places[0].namespace, a.name)},
		{Name: "ISTIO_META_MESH_ID", Value: "cluster.local"}, {Name: "TRUST_DOMAIN", Value: "cluster.local"},
	}
	c.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: ptr.To(false), Privileged: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), RunAsNonRoot: ptr.To(true),
		RunAsUser: ptr.To(int64(1337)), RunAsGroup: ptr.To(int64(1337)), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz/ready", Port: intstr.FromInt32(15021), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds: 3, PeriodSeconds: 15, SuccessThreshold: 1, FailureThreshold: 4,
	}
	return c
}

func logShipper(_ *app, r random) corev1.Container {
	c := beside("fluent-bit", "cr.fluentbit.io/fluent/fluent-bit:4.1.0", "20m", "64Mi")
	c.Args = []string{"--workdir=/fluent-bit/etc", "--config=/fluent-bit/etc/conf/fluent-bit.conf"}
	c.Ports = []corev1.ContainerPort{{Name: "http-logs", ContainerPort: 2020, Protocol: corev1.ProtocolTCP}}
	c.Env = []corev1.EnvVar{{Name: "FLUENT_ELASTICSEARCH_HOST", Value: "logs.logging.svc"}, {Name: "FLUENT_ELASTICSEARCH_PORT", Value: "9200"}, fieldEnv("NODE_NAME", "spec.nodeName")}
	c.LivenessProbe = probe(r, "/api/v1/health", 2020)
	return c
}

func sqlProxy(a *app, r random) corev1.Container {
	c := beside("cloud-sql-proxy", "gcr.io/cloud-sql-connectors/cloud-sql-proxy:2.18.2", "50m", "128Mi")
	c.Args = []string{"--structured-logs", "--port=5432", "--health-check", fmt.Sprintf("example-prod:europe-west1:%s-%s", a.name, r.hex(4))}
	c.SecurityContext = &corev1.SecurityContext{RunAsNonRoot: ptr.To(true)}
	return c
}

func oauthProxy(a *app, r random) corev1.Container {
	c := beside("oauth2-proxy", "quay.io/oauth2-proxy/oauth2-proxy:v7.12.0", "10m", "64Mi")
	c.Args = []string{"--http-address=0.0.0.0:4180", "--provider=oidc", "--upstream=http://127.0.0.1:8080", "--email-domain=example.com",
		"--oidc-issuer-url=https://login.example.com/realms/" + pick(r, teams...), "--cookie-secure=true", "--skip-provider-button=true"}
	for _, key := range []string{"client-id", "client-secret", "cookie-secret"} {
		c.Env = append(c.Env, corev1.EnvVar{Name: "OAUTH2_PROXY_" + map[string]string{"client-id": "CLIENT_ID", "client-secret": "CLIENT_SECRET", "cookie-secret": "COOKIE_SECRET"}[key],
			ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-oauth"}, Key: key}}})
	}
	c.Ports = []corev1.ContainerPort{{Name: "oauth", ContainerPort: 4180, Protocol: corev1.ProtocolTCP}}
	c.LivenessProbe, c.ReadinessProbe = probe(r, "/ping", 4180), probe(r, "/ready", 4180)
	return c
}

func exporter(_ *app, r random) corev1.Container {
	c := beside("metrics-exporter", fmt.Sprintf("quay.io/prometheus/%s-exporter:v0.%d.0", pick(r, "statsd", "redis", "jmx", "nginx"), r.between(5, 30)), "10m", "32Mi")
	c.Args = []string{"--web.listen-address=:9102", "--log.level=warn"}
	c.Ports = []corev1.ContainerPort{{Name: "exporter", ContainerPort: 9102, Protocol: corev1.ProtocolTCP}}
	return c
}

func reloader(_ *app, _ random) corev1.Container {
	c := beside("config-reloader", "quay.io/prometheus-operator/prometheus-config-reloader:v0.86.1", "10m", "50Mi")
	c.Args = []string{"--listen-address=:8081", "--reload-url=http://127.0.0.1:8080/-/reload", "--watched-dir=/etc/app"}
	c.Env = []corev1.EnvVar{fieldEnv("POD_NAME", "metadata.name"), {Name: "SHARD", Value: "0"}}
	c.Ports = []corev1.ContainerPort{{Name: "reloader-web", ContainerPort: 8081, Protocol: corev1.ProtocolTCP}}
	return c
}

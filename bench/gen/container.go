package gen

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// containers draws one or two containers of the application, its sidecars and its init containers.
func (a *app) containers(r random) {
	s := &a.spec
	if r.chance(20) { // a minimal pod
		c := a.container(r, pick(r, "app", a.name), r.between(0, 3))
		c.ReadinessProbe, c.LivenessProbe, c.StartupProbe, c.Lifecycle, c.SecurityContext = nil, nil, nil, nil, nil
		s.Containers = []corev1.Container{c}
		return
	}
	env := r.between(5, 8) // most have few variables, some have dozens
	if r.chance(6) {
		env = r.between(9, 40)
	}
	s.Containers = []corev1.Container{a.container(r, pick(r, "app", a.name, "main", "server"), env)}
	if r.chance(4) {
		second := a.container(r, pick(r, "worker", "grpc", "admin"), r.between(4, 8))
		second.Ports, second.ReadinessProbe, second.LivenessProbe, second.StartupProbe = nil, nil, nil, nil
		s.Containers = append(s.Containers, second)
	}
	for _, extra := range r.Perm(len(sidecars))[:pick(r, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2)] {
		if len(s.Containers) < 4 && a.kind != "Job" {
			s.Containers = append(s.Containers, sidecars[extra](a, r))
		}
	}
	if r.chance(10) {
		s.InitContainers = append(s.InitContainers, a.initContainer(r, pick(r, "migrate", "wait-for-db", "init-config", "permissions")))
	}
	if r.chance(2) && a.kind != "Job" {
		c := sidecars[r.IntN(len(sidecars))](a, r) // a native sidecar
		c.Name = "pre-" + c.Name
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		s.InitContainers = append(s.InitContainers, c)
	}
	for i := range s.Containers {
		s.Containers[i].VolumeMounts = a.mounts(r)
	}
	for i := range s.InitContainers {
		if r.chance(50) {
			s.InitContainers[i].VolumeMounts = a.mounts(r)
		}
	}
}

// container draws a container of the application.
func (a *app) container(r random, name string, env int) corev1.Container {
	port := int32(pick(r, 8080, 3000, 9000, 5000, 8443))
	c := corev1.Container{
		Name: name, Image: fmt.Sprintf("%s/%s:%s", pick(r, registries...), a.name, imageTag(r)),
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Env:   a.env(r, env), Resources: resources(r),
		ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: security(r),
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
	if r.chance(40) {
		c.Command = pick(r, []string{"/app/" + a.name}, []string{"/bin/sh", "-c"}, []string{"java"}, []string{"python", "-m", strings.ReplaceAll(a.name, "-", "_")})
		c.Args = pick(r, []string{"serve", "--config=/etc/" + a.name + "/config.yaml"}, []string{"exec /app/entrypoint.sh --listen :8080"},
			[]string{"-XX:MaxRAMPercentage=75.0", "-jar", "/app/app.jar"}, []string{"--workers", "4", "--bind", "0.0.0.0:8080"})
	}
	if r.chance(30) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: pick(r, "metrics", "grpc", "admin"), ContainerPort: port + 1, Protocol: corev1.ProtocolTCP})
	}
	if r.chance(30) {
		c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-env"}}}}
		if r.chance(50) {
			c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-secrets"}}})
		}
	}
	if a.kind == "Job" {
		c.Ports = nil
		return c
	}
	if r.chance(65) {
		c.ReadinessProbe = probe(r, "/readyz", port)
	}
	if r.chance(45) {
		c.LivenessProbe = probe(r, "/livez", port)
	}
	if r.chance(8) {
		c.StartupProbe = probe(r, "/startupz", port)
	}
	if r.chance(10) {
		c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", "sleep 10"}}}}
	}
	return c
}

func (a *app) initContainer(r random, name string) corev1.Container {
	return corev1.Container{
		Name: name, Image: fmt.Sprintf("%s/%s:%s", pick(r, registries...), pick(r, a.name, "busybox", "toolbox"), imageTag(r)),
		Command: []string{"/bin/sh", "-c"},
		Args: []string{pick(r, "until nc -z db 5432; do echo waiting for db; sleep 2; done", "/app/migrate up --timeout 5m",
			"cp -r /defaults/. /etc/config/ && chown -R 1000:1000 /data")},
		Env: a.env(r, r.between(1, 4)), Resources: resources(r), ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: security(r),
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

func imageTag(r random) string {
	return pick(r, fmt.Sprintf("%d.%d.%d", r.IntN(9), r.IntN(40), r.IntN(20)), "main-"+r.hex(7),
		fmt.Sprintf("2026.%d.%d-%s", r.between(1, 11), r.between(1, 28), r.hex(8)), "v"+fmt.Sprint(r.IntN(300)))
}

func security(r random) *corev1.SecurityContext {
	if r.chance(55) {
		return nil
	}
	c := &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false)}
	if r.chance(70) {
		c.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
	if r.chance(50) {
		c.ReadOnlyRootFilesystem = ptr.To(true)
	}
	return c
}

func resources(r random) corev1.ResourceRequirements {
	if r.chance(8) {
		return corev1.ResourceRequirements{}
	}
	memory := resource.MustParse(pick(r, "64Mi", "128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "1536Mi"))
	req := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(pick(r, "10m", "50m", "100m", "250m", "500m", "1", "2")), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
	}
	if r.chance(50) {
		req.Limits[corev1.ResourceCPU] = resource.MustParse(pick(r, "2", "3", "4"))
	}
	if r.chance(10) {
		req.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("1Gi")
	}
	return req
}

func probe(r random, path string, port int32) *corev1.Probe {
	p := &corev1.Probe{
		TimeoutSeconds: int32(pick(r, 1, 1, 3, 5)), PeriodSeconds: int32(pick(r, 10, 10, 5, 30)), SuccessThreshold: 1, FailureThreshold: int32(pick(r, 3, 3, 5, 30)),
		InitialDelaySeconds: int32(pick(r, 0, 0, 5, 10, 30)),
	}
	switch r.IntN(6) {
	case 0:
		p.TCPSocket = &corev1.TCPSocketAction{Port: intstr.FromInt32(port)}
	case 1:
		p.Exec = &corev1.ExecAction{Command: []string{"/bin/grpc_health_probe", fmt.Sprintf("-addr=:%d", port), "-connect-timeout=2s"}}
	case 2:
		p.GRPC = &corev1.GRPCAction{Port: port, Service: ptr.To("")}
	default:
		p.HTTPGet = &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}
		if r.chance(20) {
			p.HTTPGet.HTTPHeaders = []corev1.HTTPHeader{{Name: "X-Probe", Value: "kubelet"}}
		}
	}
	return p
}

// env draws n variables: most have a value, some a reference.
func (a *app) env(r random, n int) []corev1.EnvVar {
	var env []corev1.EnvVar
	for i, at := range r.Perm(len(settings)) {
		if i == n {
			break
		}
		env = append(env, corev1.EnvVar{Name: settings[at]})
		a.value(r, &env[i])
	}
	if r.chance(30) {
		for _, f := range [][2]string{{"POD_NAME", "metadata.name"}, {"POD_NAMESPACE", "metadata.namespace"}, {"POD_IP", "status.podIP"}}[:r.between(1, 3)] {
			env = append(env, corev1.EnvVar{Name: f[0], ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: f[1]}}})
		}
	}
	return env
}

func (a *app) value(r random, v *corev1.EnvVar) {
	switch n := r.IntN(100); {
	case n < 15:
		v.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.name + pick(r, "-secrets", "-db", "-credentials")}, Key: strings.ToLower(v.Name)}}
	case n < 22:
		v.ValueFrom = &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-config"}, Key: strings.ToLower(v.Name)}}
	case n < 45:
		v.Value = fmt.Sprintf("%s://%s.%s.svc.cluster.local:%d/%s", pick(r, "http", "https", "redis", "postgres", "amqp"), pick(r, areas...)+"-"+pick(r, roles...),
			namespaceName(r.IntN(Namespaces)), pick(r, 80, 443, 5432, 6379, 8080), pick(r, "", "v1", "db0", "api/v2?timeout=3s"))
	case n < 60:
		v.Value = pick(r, "true", "false", "info", "debug", "json", "eu-west-1", "production", "none")
	case n < 80:
		v.Value = fmt.Sprint(r.IntN(10_000)) + pick(r, "", "", "s", "ms", "MB")
	case n < 92:
		v.Value = strings.ReplaceAll(a.name, "-", pick(r, "_", ".", "-")) + pick(r, "", "-prod", "-events", ".v2")
	default:
		v.Value = pick(r, "-Xms512m -Xmx1024m -XX:+UseG1GC -XX:+ExitOnOutOfMemoryError -Dfile.encoding=UTF-8",
			"service.name="+a.name+",service.namespace=shop,deployment.environment=production",
			`{"default":{"rps":100,"burst":200},"premium":{"rps":1000,"burst":1500}}`,
			"https://"+r.hex(32)+"@o4504.ingest.sentry.example/"+fmt.Sprint(r.IntN(9_000_000)))
	}
}

// volumes draws the volumes.
func (a *app) volumes(r random) {
	add := func(name string, source corev1.VolumeSource) {
		a.spec.Volumes = append(a.spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
	if r.chance(45) {
		add("config", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: a.name + "-config"}, DefaultMode: ptr.To(int32(420))}})
	}
	if r.chance(15) {
		add("secrets", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: a.name + "-tls", DefaultMode: ptr.To(int32(420))}})
	}
	if r.chance(30) {
		add("tmp", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	}
	if r.chance(5) {
		add("shm", corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse("64Mi"))}})
	}
	if a.kind == "StatefulSet" {
		add("data", corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + a.name}})
	}
	if a.kind == "DaemonSet" {
		add("varlog", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log", Type: ptr.To(corev1.HostPathUnset)}})
	}
}

// mounts mounts most of the volumes.
func (a *app) mounts(r random) []corev1.VolumeMount {
	var list []corev1.VolumeMount
	for _, v := range a.spec.Volumes {
		if r.chance(75) {
			list = append(list, corev1.VolumeMount{Name: v.Name, MountPath: mountPaths[v.Name], ReadOnly: v.Name == "config" || v.Name == "secrets" || v.Name == "varlog"})
		}
	}
	return list
}

var mountPaths = map[string]string{
	"config": "/etc/app", "secrets": "/etc/tls", "tmp": "/tmp", "shm": "/dev/shm", "data": "/var/lib/data", "varlog": "/var/log",
}

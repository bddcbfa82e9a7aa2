package devcluster

import "fmt"

// The flags of each component. Everything listens on 127.0.0.1 or not at all.

// serviceCIDR is the range of the Services' addresses. The first address is the
// API server's and is in its certificate.
const serviceCIDR = "10.96.0.0/16"

// etcdArgs gives the member a unique name, which proves that our etcd answers.
// etcd syncs nothing to disk, which makes it several times faster: after a kill
// its data are still in the kernel's page cache. Only a power failure loses them.
func (c *Cluster) etcdArgs() []string {
	peer := fmt.Sprintf("http://127.0.0.1:%d", c.etcdPeerPort)
	return []string{
		"--name=" + c.etcdName,
		"--data-dir=" + c.path("etcd"),
		"--listen-client-urls=" + c.EtcdURL(),
		"--advertise-client-urls=" + c.EtcdURL(),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + c.etcdName + "=" + peer,
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	}
}

// apiServerArgs has the default admission plugins and kubeadm's authorization
// modes. It has no endpoint reconciler, which refuses loopback addresses. The API
// server ends watches when it stops; by default it would wait a minute for them.
func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=" + c.EtcdURL(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		fmt.Sprintf("--secure-port=%d", c.apiPort),
		"--tls-cert-file=" + c.servingCert,
		"--tls-private-key-file=" + c.servingKey,
		"--client-ca-file=" + c.pki.caFile(),
		"--token-auth-file=" + c.path("pki", "tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.serviceAccountKeyFile(),
		"--service-account-signing-key-file=" + c.pki.serviceAccountKeyFile(),
		"--authorization-mode=Node,RBAC",
		"--allow-privileged=true",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--shutdown-watch-termination-grace-period=5s",
	}
	return append(args, c.opts.APIServerArgs...)
}

func (c *Cluster) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("pki", "kube-controller-manager.kubeconfig"),
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + c.pki.serviceAccountKeyFile(),
		"--root-ca-file=" + c.pki.caFile(),
		"--cluster-signing-cert-file=" + c.pki.caFile(),
		"--cluster-signing-key-file=" + c.pki.caKeyFile(),
		"--leader-elect=false",
		"--secure-port=0",
	}
}

func (c *Cluster) schedulerArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("pki", "kube-scheduler.kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
	}
}

func (c *Cluster) kwokArgs() []string {
	return []string{
		"--kubeconfig=" + c.path("pki", "kwok.kubeconfig"),
		"--config=" + c.path("stages.yaml"),
		"--manage-nodes-with-annotation-selector=" + fakeNodes,
		"--cidr=10.244.0.1/16",
		"--node-ip=127.0.0.1",
		"--node-port=0", // no kubelet API, so it listens nowhere
		"--node-lease-duration-seconds=40",
	}
}

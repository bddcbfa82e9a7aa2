package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/examples/internal/program"
)

// webhook is the address of the gate, and its certificate, which is made at each start and registered with the API
// server. So there is no key on disk, and nothing expires unseen.
type webhook struct {
	host, port string
	tls        *tls.Config
	pem        []byte
}

func newWebhook(at net.Addr, host string) (*webhook, error) {
	ip, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return nil, err
	}
	if addr, err := netip.ParseAddr(ip); host == "" && err == nil && addr.IsUnspecified() {
		return nil, program.Usage("--listen names no address, only port %s: give the address or name by which the API server reaches it as --host", port)
	}
	if host == "" {
		host = ip
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, DNSNames: []string{host},
	}
	if ip := net.ParseIP(host); ip != nil {
		cert.IPAddresses, cert.DNSNames = []net.IP{ip}, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	return &webhook{
		host: host, port: port, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		tls: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
	}, nil
}

func (w *webhook) url() string { return "https://" + net.JoinHostPort(w.host, w.port) }

// register registers the webhook with the API server, by server-side apply: an earlier registration is replaced.
func (w *webhook) register(ctx context.Context, cfg *rest.Config, label string) error {
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	where := apply.WebhookClientConfig().WithCABundle(w.pem...)
	if service, rest, ok := strings.Cut(w.host, "."); ok && strings.HasSuffix(rest, ".svc") {
		where.WithService(apply.ServiceReference().WithName(service).WithNamespace(strings.TrimSuffix(rest, ".svc")).WithPort(443))
	} else {
		where.WithURL(w.url())
	}
	_, err = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Apply(ctx,
		apply.ValidatingWebhookConfiguration("image-gate").WithWebhooks(apply.ValidatingWebhook().
			WithName("image-gate.tattler.dev").WithAdmissionReviewVersions("v1").WithClientConfig(where).
			WithSideEffects(admissionv1.SideEffectClassNone).WithFailurePolicy(admissionv1.Fail).WithTimeoutSeconds(8).
			// Only Deployments with the label come here: everything else goes on while the gate is down.
			WithObjectSelector(applymeta.LabelSelector().WithMatchExpressions(
				applymeta.LabelSelectorRequirement().WithKey(label).WithOperator(metav1.LabelSelectorOpExists))).
			WithRules(apply.RuleWithOperations().WithOperations(admissionv1.Create, admissionv1.Update).
				WithAPIGroups("apps").WithAPIVersions("v1").WithResources("deployments"))),
		metav1.ApplyOptions{FieldManager: "image-gate", Force: true})
	if err != nil {
		return fmt.Errorf("register the webhook: %w", err)
	}
	return nil
}

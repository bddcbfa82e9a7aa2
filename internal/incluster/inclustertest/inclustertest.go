// Package inclustertest is a cluster with a daemon, for tests of programs that reach it: an API server that has a Service,
// its pod and ServiceAccounts, and forwards ports as a kubelet does; and a daemon that authenticates viewers.
package inclustertest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tattler-dev/tattler/internal/access"
)

// Names in the cluster. Alice has a client certificate and may see everything, the token may see what Viewer says.
const (
	// Namespace, Service and Pod are the daemon's.
	Namespace = "monitoring"
	Service   = "tattler"
	Pod       = "tattler-0"
	// Alice is the user of the client certificate.
	Alice = "alice"
	// UserToken is the token of a kubeconfig, AccountToken one of ServiceAccount shop/viewer for the daemon.
	UserToken    = "the-token-of-bob"
	AccountToken = "a-token-for-the-daemon"
)

// Cluster is a running cluster.
type Cluster struct {
	// Certificate, Token and Nobody are kubeconfigs: with Alice's certificate, with UserToken, and without credentials
	// for the daemon.
	Certificate, Token string
	// Viewer is what the tokens may see; nil: everything. Alice may see everything.
	Viewer access.Access
	// Services are further names of labelled Services, NAMESPACE/NAME.
	Services []string
	// Broken makes the kubelet refuse to forward ports.
	Broken bool
	// Hold, if set, is called before the API server answers a request to forward ports.
	Hold func(r *http.Request)

	api, daemon *httptest.Server

	mu   sync.Mutex
	seen []string
}

// Seen returns the credentials that the daemon was shown: "cert CN" or "token TOKEN", once each.
func (c *Cluster) Seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Start starts a cluster with a daemon that serves h. Its files are in dir.
func Start(dir string, h http.Handler) (*Cluster, error) {
	c := &Cluster{Certificate: filepath.Join(dir, "certificate"), Token: filepath.Join(dir, "token")}
	clusterCA, err := newCA("cluster")
	if err != nil {
		return nil, err
	}
	daemonCA, err := newCA("daemon")
	if err != nil {
		return nil, err
	}
	alice, err := clusterCA.issue(&x509.Certificate{Subject: pkix.Name{CommonName: Alice}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		return nil, err
	}
	daemonCert, err := daemonCA.issue(&x509.Certificate{DNSNames: []string{Service + "." + Namespace + ".svc"}})
	if err != nil {
		return nil, err
	}
	apiCert, err := clusterCA.issue(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		return nil, err
	}
	c.daemon = httptest.NewUnstartedServer(c.authenticate(h))
	c.daemon.TLS = &tls.Config{Certificates: []tls.Certificate{daemonCert.pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clusterCA.pool(), MinVersion: tls.VersionTLS12}
	c.daemon.StartTLS()
	c.api = httptest.NewUnstartedServer(c.apiServer(string(daemonCA.pem)))
	c.api.TLS = &tls.Config{Certificates: []tls.Certificate{apiCert.pair}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: clusterCA.pool(), MinVersion: tls.VersionTLS12}
	c.api.StartTLS()
	for path, user := range map[string]any{
		c.Certificate: map[string]any{"client-certificate-data": alice.pem, "client-key-data": alice.key},
		c.Token:       map[string]any{"token": UserToken},
	} {
		if err := c.kubeconfig(path, clusterCA.pem, user); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close ends the cluster.
func (c *Cluster) Close() {
	c.api.CloseClientConnections()
	c.api.Close()
	c.daemon.CloseClientConnections()
	c.daemon.Close()
}

// kubeconfig writes a kubeconfig, which may be JSON.
func (c *Cluster) kubeconfig(path string, ca []byte, user any) error {
	b, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": c.api.URL, "certificate-authority-data": ca}}},
		"users":    []any{map[string]any{"name": "me", "user": user}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "me"}}},
	})
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// authenticate passes requests on with the rights of their viewers.
func (c *Cluster) authenticate(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var viewer access.Access = access.Everything{}
		token, hasToken := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if hasToken {
			c.note("token " + token)
		}
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			c.note("cert " + certs[0].Subject.CommonName)
		} else if token != UserToken && token != AccountToken {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"say who you are"}`)
			return
		} else if c.Viewer != nil {
			viewer = c.Viewer
		}
		h.ServeHTTP(w, r.WithContext(access.With(r.Context(), viewer)))
	})
}

func (c *Cluster) note(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.seen {
		if s == text {
			return
		}
	}
	c.seen = append(c.seen, text)
}

// apiServer answers as an API server, to the users of the kubeconfigs.
func (c *Cluster) apiServer(daemonCA string) http.Handler {
	mux := http.NewServeMux()
	send := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	service := func(namespace, name string) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"app.kubernetes.io/name": "tattler"}},
			"spec": map[string]any{"selector": map[string]any{"app": "tattler"}, "ports": []any{
				map[string]any{"name": "metrics", "port": 8080, "targetPort": 8080},
				map[string]any{"name": "web", "port": 443, "targetPort": "page"},
			}},
		}
	}
	mux.HandleFunc("GET /api/v1/services", func(w http.ResponseWriter, r *http.Request) {
		selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		items := []any{service(Namespace, Service)}
		for _, s := range c.Services {
			namespace, name, _ := strings.Cut(s, "/")
			items = append(items, service(namespace, name))
		}
		if selector.Matches(labels.Set{"app.kubernetes.io/name": "tattler", "app.kubernetes.io/component": "metrics"}) {
			items = append(items, service(Namespace, Service+"-metrics"))
		}
		send(w, map[string]any{"items": items})
	})
	base := "/api/v1/namespaces/" + Namespace
	mux.HandleFunc("GET "+base+"/services/"+Service, func(w http.ResponseWriter, _ *http.Request) { send(w, service(Namespace, Service)) })
	mux.HandleFunc("GET "+base+"/pods", func(w http.ResponseWriter, _ *http.Request) {
		ready := func(name, status string) any {
			return map[string]any{
				"metadata": map[string]any{"namespace": Namespace, "name": name},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "tattler", "ports": []any{map[string]any{"name": "page", "containerPort": 8443}}}}},
				"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}},
			}
		}
		send(w, map[string]any{"items": []any{ready("tattler-old", "False"), ready(Pod, "True")}})
	})
	mux.HandleFunc("GET "+base+"/configmaps/"+Service+"-ca", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"data": map[string]any{"ca.crt": daemonCA}})
	})
	mux.HandleFunc("POST /api/v1/namespaces/shop/serviceaccounts/viewer/token", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Spec struct{ Audiences []string } }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Spec.Audiences) != 1 || in.Spec.Audiences[0] != "tattler" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		send(w, map[string]any{"status": map[string]any{"token": AccountToken, "expirationTimestamp": time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)}})
	})
	mux.HandleFunc(base+"/pods/"+Pod+"/portforward", func(w http.ResponseWriter, r *http.Request) {
		if c.Hold != nil {
			c.Hold(r)
		}
		Forward(w, r, func(ctx context.Context, port string) (net.Conn, error) {
			if c.Broken || port != "8443" {
				return nil, fmt.Errorf("nothing listens on port %s", port)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", c.daemon.Listener.Addr().String())
		})
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		send(w, map[string]any{"kind": "Status", "message": r.URL.Path + " not found"})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) == 0 && r.Header.Get("Authorization") != "Bearer "+UserToken {
			w.WriteHeader(http.StatusUnauthorized)
			send(w, map[string]any{"kind": "Status", "message": "Unauthorized"})
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// ca issues certificates.
type ca struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

type issued struct {
	pem, key []byte
	pair     tls.Certificate
}

func newCA(name string) (*ca, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	return &ca{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), t, key}, nil
}

func (c *ca) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(c.pem)
	return p
}

func (c *ca) issue(t *x509.Certificate) (*issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	t.SerialNumber, t.NotBefore, t.NotAfter = big.NewInt(2), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, c.cert, &key.PublicKey, c.key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	out := &issued{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})}
	if out.pair, err = tls.X509KeyPair(out.pem, out.key); err != nil {
		return nil, fmt.Errorf("issue certificate: %w", err)
	}
	return out, nil
}

// Certificate writes the certificate of a server with a DNS name, its key, and the CA that signed it, and returns the
// files.
func Certificate(dir, name string) (cert, key, authority string, err error) {
	ca, err := newCA("daemon")
	if err != nil {
		return "", "", "", err
	}
	i, err := ca.issue(&x509.Certificate{DNSNames: []string{name}})
	if err != nil {
		return "", "", "", err
	}
	cert, key, authority = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), filepath.Join(dir, "ca.crt")
	for path, text := range map[string][]byte{cert: i.pem, key: i.key, authority: ca.pem} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", "", "", fmt.Errorf("write certificate: %w", err)
		}
	}
	return cert, key, authority, nil
}

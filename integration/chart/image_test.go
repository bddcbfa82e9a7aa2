package chart

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// image is what the Dockerfile makes: files from its build stage, by their place in the image, and its settings.
type image struct {
	labels     map[string]string
	files      map[string]string
	user       string
	env        []string
	entrypoint string
}

var (
	copyLine  = regexp.MustCompile(`(?m)^COPY --from=build (\S+) (\S+)$`)
	labelPart = regexp.MustCompile(`(org\.opencontainers\.image\.[a-z]+)="([^"]*)"`)
	envLine   = regexp.MustCompile(`(?m)^ENV (\S+)$`)
)

func dockerfile(t *testing.T) *image {
	t.Helper()
	text := string(read(t, repository+"/Dockerfile"))
	_, last, found := strings.Cut(text, "\nFROM scratch\n")
	if !found {
		t.Fatal("the image is not made from scratch")
	}
	i := &image{files: map[string]string{}, labels: map[string]string{}}
	for _, m := range labelPart.FindAllStringSubmatch(last, -1) {
		i.labels[m[1]] = m[2]
	}
	for _, m := range copyLine.FindAllStringSubmatch(last, -1) {
		i.files[m[2]] = m[1]
	}
	for _, m := range envLine.FindAllStringSubmatch(last, -1) {
		i.env = append(i.env, m[1])
	}
	_, i.user, _ = strings.Cut(last, "\nUSER ")
	i.user, _, _ = strings.Cut(i.user, "\n")
	_, i.entrypoint, _ = strings.Cut(last, "\nENTRYPOINT [\"")
	i.entrypoint, _, _ = strings.Cut(i.entrypoint, "\"]")
	if want := strings.Count(last, "COPY "); len(i.files) != want || i.user == "" || i.files[i.entrypoint] == "" {
		t.Fatalf("the Dockerfile is not as this test reads it: %+v", i)
	}
	return i
}

var built = struct {
	sync.Mutex
	paths map[string]string
}{paths: map[string]string{}}

// build makes the static binary of a program as the Dockerfile does, with its flags, for this machine.
func build(t *testing.T, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if p := built.paths[name]; p != "" {
		return p
	}
	text := strings.ReplaceAll(string(read(t, repository+"/Dockerfile")), "\\\n", "")
	_, line, found := strings.Cut(text, " go build ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatal("the Dockerfile builds nothing")
	}
	dir, err := os.MkdirTemp(os.TempDir(), "tattler-image-") //nolint:usetesting // tests share it; TestMain removes it
	if err != nil {
		t.Fatal(err)
	}
	module := repository
	if name != "tattler" {
		module = repository + "/cloud"
	}
	out := filepath.Join(dir, "tattler")
	script := "go build " + strings.ReplaceAll(line, "/out/tattler", out)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "PROGRAM="+name, "VERSION=v0.0.0-test")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
	built.paths[name] = out
	return out
}

// program returns the path of tattler.
func program(t *testing.T) string { return build(t, "tattler") }

// assemble makes the root of a program's image in a new folder. The CA is added to the image's roots.
func (i *image) assemble(t *testing.T, name string, ca []byte) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // the image's user must read it
		t.Fatal(err)
	}
	for to, from := range i.files {
		switch {
		case from == "/out/tattler":
			from = build(t, name)
		case from == "/out/THIRD-PARTY-LICENSES.txt":
			from = notices(t, name)
		case strings.HasPrefix(from, "/src/"):
			from = filepath.Join(repository, strings.TrimPrefix(from, "/src/"))
		case strings.HasPrefix(from, "/usr/local/go/"):
			from = filepath.Join(goroot(t), strings.TrimPrefix(from, "/usr/local/go/"))
		}
		data := read(t, from)
		if strings.HasSuffix(to, ".crt") {
			data = append(append(data, '\n'), ca...)
		}
		to = filepath.Join(root, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // as in an image
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil { //nolint:gosec // as in an image
			t.Fatal(err)
		}
	}
	return root
}

// notices writes the licences of what a program links to a file, with the Dockerfile's command.
func notices(t *testing.T, name string) string {
	t.Helper()
	text := strings.ReplaceAll(string(read(t, repository+"/Dockerfile")), "\\\n", "")
	_, line, found := strings.Cut(text, "\nRUN dir=.; ")
	line, _, _ = strings.Cut(line, "\n")
	if !found {
		t.Fatal("the Dockerfile collects no licences")
	}
	out := filepath.Join(t.TempDir(), "notices.txt")
	script := "dir=.; " + strings.ReplaceAll(line, "/out/THIRD-PARTY-LICENSES.txt", out)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "PROGRAM="+name, "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, text)
	}
	return out
}

// goroot returns the folder of the Go toolchain.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// authority is a CA and a server certificate for 127.0.0.1.
func authority(t *testing.T) (ca []byte, server tls.Certificate) {
	t.Helper()
	now := time.Now()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if signer == nil {
			parent, signer = template, key
		}
		template.NotBefore, template.NotAfter = now.Add(-time.Minute), now.Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return der, key
	}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "chart test"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, key := issue(root, nil, nil)
	leaf, leafKey := issue(&x509.Certificate{SerialNumber: big.NewInt(2), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, root, key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), tls.Certificate{Certificate: [][]byte{leaf}, PrivateKey: leafKey}
}

// TestImage runs the programs in the roots of their images, which hold nothing else.
func TestImage(t *testing.T) {
	i := dockerfile(t)
	if i.user != "65532:65532" {
		t.Errorf("the image's user is %q", i.user)
	}
	want := map[string]string{
		"title": "$PROGRAM", "description": "Records every change in a Kubernetes cluster, and delivers it to sinks", "licenses": "Apache-2.0",
		"source": "https://github.com/tattler-dev/tattler", "version": "$VERSION", "revision": "$REVISION",
	}
	for name, value := range want {
		if got := i.labels["org.opencontainers.image."+name]; got != value {
			t.Errorf("the label %s is %q, want %q", name, got, value)
		}
	}
	for _, name := range []string{"tattler", "tattler-cloud"} {
		t.Run(name, func(t *testing.T) {
			root := i.assemble(t, name, nil)
			for file, text := range map[string]string{"LICENSE": "Apache License", "THIRD-PARTY-LICENSES.txt": "\nk8s.io/client-go (LICENSE)"} {
				if !strings.Contains(string(read(t, filepath.Join(root, "licenses", file))), text) {
					t.Errorf("/licenses/%s does not have %q", file, text)
				}
			}
			c := &container{Root: root, User: 65532, Group: 65532, ReadOnly: true, Path: i.entrypoint, Args: []string{"version"}, Env: i.env}
			cmd := c.command(t)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "v0.0.0-test") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestImageScript: the script tells the build the version and the commit, which become labels.
func TestImageScript(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "arguments")
	if err := os.WriteFile(filepath.Join(dir, "podman"), []byte("#!/bin/sh\necho \"$*\" >>"+log+"\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "tools/image.sh")
	cmd.Dir = repository
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "TOOL=podman", "VERSION=v1.2.3", "REVISION=0123456789abcdef", "PROGRAM=tattler-cloud")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := "--build-arg PROGRAM=tattler-cloud --build-arg VERSION=v1.2.3 --build-arg REVISION=0123456789abcdef "
	if got := string(read(t, log)); !strings.Contains(got, want) {
		t.Errorf("the arguments are\n%s", got)
	}
}

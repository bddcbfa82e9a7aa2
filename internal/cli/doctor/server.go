package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tattler-dev/tattler/internal/cli/kube"
)

// clockTolerance is the difference of clocks that is not worth a warning: servers send whole seconds, and a request takes
// time.
const clockTolerance = 5 * time.Second

// maxAnswer bounds the part of an answer that is read.
const maxAnswer = 1 << 20

// server asks for the version, and compares the clocks. It reports whether the server answers and what would be watched
// is known.
func (x *examined) server(ctx context.Context) bool {
	reach, cancel := x.host.within(ctx, checkReach, x.name, reachTimeout)
	defer cancel()
	began := x.host.now()
	resp, body, err := x.get(reach, "/version", "application/json")
	ended := x.host.now()
	if err != nil {
		x.add(Server, "reachable", Error, x.cluster.ExplainStart(err).Error(),
			x.nothing()+" Everything that needs the server was left out below.", advice(err))
		return false
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(body, &version); err != nil || version.GitVersion == "" {
		x.add(Server, "reachable", Error, "the server at "+x.cluster.Config.Host+" is not a Kubernetes API server", "", "Check the address of the context in the kubeconfig.")
		return false
	}
	x.add(Server, "reachable", OK, fmt.Sprintf("Kubernetes %s answers in %s", version.GitVersion, span(ended.Sub(began))), "", "")
	x.clock(resp.header.Get("Date"), began, ended)
	return x.planned(ctx)
}

// advice says what to do when the server does not answer as it should.
func advice(err error) string {
	var (
		status      apierrors.APIStatus
		certificate *tls.CertificateVerificationError
	)
	switch {
	case apierrors.IsUnauthorized(err):
		return "Renew the credentials of the kubeconfig. kubectl auth whoami with the same context shows whether they work."
	case apierrors.IsForbidden(err):
		return "Grant the user the cluster role system:discovery. Without credentials in the context, the user is system:anonymous."
	case errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError:
		return "Check the server's log, and the load balancer in front of it, if there is one."
	case errors.As(err, &certificate):
		return "Correct the certificate authority and the address of the cluster in the kubeconfig."
	}
	return "Check the address, the network, and the credentials of the kubeconfig."
}

// ofServer reports whether an error is about the server or the way to it, and not about what was asked for.
func ofServer(err error) bool {
	var status apierrors.APIStatus
	var request *url.Error
	return errors.As(err, &status) || errors.As(err, &request) || errors.Is(err, context.DeadlineExceeded)
}

// nothing says what follows if the server cannot be used.
func (x *examined) nothing() string {
	if x.name != "" {
		return "Nothing of this cluster can be recorded."
	}
	return "Nothing can be recorded."
}

// identify asks for the cluster's identity, which stays unknown if the namespace kube-system must not be read.
func (x *examined) identify(ctx context.Context) {
	ctx, cancel := x.host.within(ctx, checkReach, x.name, reachTimeout)
	defer cancel()
	var namespace metav1.PartialObjectMetadata
	if _, body, err := x.get(ctx, "/api/v1/namespaces/kube-system", "application/json"); err == nil && json.Unmarshal(body, &namespace) == nil {
		x.identity = string(namespace.UID)
	}
}

// get requests a path with the user's credentials; an answer that is not 200 is an error.
func (x *examined) get(ctx context.Context, uri, accept string) (*answered, []byte, error) {
	client, err := rest.HTTPClientFor(x.cluster.Config)
	if err != nil {
		return nil, nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(x.cluster.Config)
	if err != nil {
		return nil, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base.String(), "/")+uri, http.NoBody)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = apierrors.NewGenericServerResponse(resp.StatusCode, "GET", uriResource, uri, strings.TrimSpace(string(body)), 0, true)
	}
	return &answered{resp.StatusCode, resp.Header}, body, err
}

// clock compares the Date of an answer with the time between request and answer.
func (x *examined) clock(date string, began, ended time.Time) {
	server, err := http.ParseTime(date)
	if err != nil {
		x.add(Server, "clock", Note, "the clocks cannot be compared: the server sends no Date", "", "")
		return
	}
	// A Date is cut to a second, so half a second is added on average.
	skew := began.Add(ended.Sub(began) / 2).Sub(server.Add(time.Second / 2))
	uncertain := ended.Sub(began)/2 + time.Second/2
	if skew.Abs() <= clockTolerance+uncertain {
		x.add(Server, "clock", OK, fmt.Sprintf("the clocks agree, to %s", upTo(max(skew.Abs(), uncertain, time.Second))), "", "")
		return
	}
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	x.add(Server, "clock", Warning, fmt.Sprintf("this machine's clock is %s %s the API server's", span(skew.Abs()), way),
		"Times of changes are the server's, but when they were seen, --since, and the age at which history is removed are this machine's.",
		"Correct the clock that is wrong, with NTP for instance.")
}

// planned asks what would be watched.
func (x *examined) planned(ctx context.Context) bool {
	ctx, cancel := x.host.within(ctx, checkKinds, x.name, rightsTimeout)
	defer cancel()
	plan, err := x.setup.Plan(ctx, x.cluster)
	if err != nil {
		meaning, action := "tattler run does not start.", "Correct the TYPE, or watch: in the configuration."
		if x.name != "" {
			meaning = x.nothing()
		}
		if ofServer(err) {
			action = advice(err)
		}
		x.add(Server, "kinds", Error, err.Error(), meaning, action)
		return false
	}
	x.plan = plan
	if failed := plan.Catalog.Failed(); len(failed) > 0 {
		x.add(Server, "groups", Warning, "no answer from the API groups "+listed(failed),
			"Their kinds are unknown, and not watched until they answer.", "kubectl get apiservices shows which are not available, and why.")
	}
	if len(plan.Unmatched) > 0 {
		x.add(Server, "globs", Note, "no kind matches (yet): "+listed(plan.Unmatched), "Kinds that appear later are watched.", "")
	}
	x.namespaces(ctx)
	return true
}

// namespaces reports the named namespaces that do not exist, as far as the user may ask.
func (x *examined) namespaces(ctx context.Context) {
	var missing []string
	for _, ns := range x.plan.Namespaces {
		if _, _, err := x.get(ctx, "/api/v1/namespaces/"+ns, "application/json"); apierrors.IsNotFound(err) {
			missing = append(missing, ns)
		}
	}
	switch {
	case len(missing) == 1:
		x.add(Server, "namespaces", Warning, "there is no namespace "+missing[0]+" (yet)", "Its changes are recorded once it exists.", "Correct the name, if it is misspelt.")
	case len(missing) > 1:
		x.add(Server, "namespaces", Warning, "there are no namespaces "+listed(missing)+" (yet)", "Their changes are recorded once they exist.", "Correct the names, if they are misspelt.")
	}
}

// cause is the reason of a failed request, for a title.
func (x *examined) cause(err error) string { return kube.Cause(x.cluster.Explain(err)).Error() }

// answered is the head of an answer.
type answered struct {
	code   int
	header http.Header
}

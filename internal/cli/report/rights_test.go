package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tattler-dev/tattler/internal/control"
)

func TestStatusOfRights(t *testing.T) {
	s := control.Status{MissingRights: []control.Lack{
		{Resource: "secrets", Namespace: "shop", Verbs: []string{"list", "watch"}},
		{Resource: "namespaces", Name: "kube-system", Verbs: []string{"get"}, Without: "only its history distinguishes another cluster at the same address"},
	}, RightsError: "ask for rights: timeout"}
	p := newPage(80, utc(t))
	p.rights(&s)
	check(t, `

		Rights    2 missing; tattler rbac prints the roles that grant them
		          secrets: may not list, watch in shop
		          namespaces/kube-system: may not get: only its history distinguishes
		          another cluster at the same address

		Rights    not all are known
		          ask for rights: timeout
		`, strings.TrimPrefix(p.String(), "\n"))
	for i := range 12 {
		s.MissingRights = append(s.MissingRights, control.Lack{Resource: fmt.Sprint("kind", i), Verbs: []string{"get"}})
	}
	p = newPage(80, utc(t))
	p.rights(&s)
	if !strings.Contains(p.String(), "          and 4 more (-o json has all)\n") {
		t.Error(p.String())
	}
	p = newPage(80, utc(t))
	if p.rights(&control.Status{}); p.String() != "" {
		t.Errorf("%q", p.String())
	}
}

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tattler-dev/tattler/internal/render"
)

// scenario is a course of events in its own namespace, and the log's lines about it.
type scenario struct {
	name string
	late bool // played after the others, which keep the controllers busy
	play func(s *stage)
	// heads are regular expressions for the lines that begin with a time, without the time: all of them, in
	// order. DURATION stands for a duration in the form of render.Duration.
	heads []string
	// rest matches further lines, whose number or order depends on controllers or on when the log is read.
	rest string
	// bad is a text that must be readable on every screen.
	bad string
	// check compares the lines with the cluster's objects.
	check func(s *stage, said string)
	// anyOrder is true if controllers decide the order of lines; fits, if everything must fit on a screen, with
	// the last change uncut.
	anyOrder, fits bool
}

// stage is the environment of a scenario.
type stage struct {
	*testing.T
	client kubernetes.Interface
	ns     string
}

func (s *stage) kubectl(args ...string) string {
	s.Helper()
	out, err := runKubectl("", cluster.Kubeconfig(), append([]string{"-n", s.ns}, args...)...)
	if err != nil {
		s.Errorf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// object reads an object.
func object[T any](s *stage, kind, name string) T {
	s.Helper()
	var o T
	if err := json.Unmarshal([]byte(s.kubectl("get", kind, name, "-o", "json", "--show-managed-fields")), &o); err != nil {
		s.Fatal(err)
	}
	return o
}

// apply creates a workload whose containers behave as given, on a node.
func (s *stage) apply(kind, name, behaves, node string, replicas int, more string) {
	s.Helper()
	manifest := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"name":%q},"spec":{"replicas":%d,%s"serviceName":"x","selector":{"matchLabels":{"app":%[2]q}},
		"template":{"metadata":{"labels":{"app":%[2]q,"behaves":%[5]q}},"spec":{"nodeName":%[6]q,"terminationGracePeriodSeconds":1,"containers":[{"name":"app","image":"shop/app:1"}]}}}}`,
		kind, name, replicas, more, behaves, node)
	if node == "silent" { // its pods stay there, however long the other scenarios take
		manifest = strings.Replace(manifest, `"containers":`, `"tolerations":[{"operator":"Exists"}],"containers":`, 1)
	}
	if kind == "Deployment" {
		manifest = strings.Replace(manifest, `"serviceName":"x",`, "", 1)
	}
	path := filepath.Join(s.TempDir(), name+".json")
	if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
		s.Fatal(err)
	}
	s.kubectl("apply", "-f", path)
}

// until waits for a condition.
func (s *stage) until(what string, ok func() bool) {
	s.Helper()
	for began := time.Now(); !ok(); pause() {
		if time.Since(began) > 2*patience {
			s.Fatalf("no %s after %v", what, 2*patience)
		}
	}
}

// wrote returns the time of a manager's last write to an object.
func wrote(o metav1.ObjectMeta, manager string) time.Time {
	var at time.Time
	for _, m := range o.ManagedFields {
		if m.Manager == manager && m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}

// between returns a duration in the log's words.
func between(from, to time.Time) string {
	if !to.After(from) {
		return "within 1 s"
	}
	return "in " + render.Duration(to.Sub(from))
}

// progressing returns the last time at which a Deployment reported the progress of its rollout.
func progressing(d appsv1.Deployment) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing {
			return c.LastUpdateTime.Time
		}
	}
	return time.Time{}
}

const deadline = `"progressDeadlineSeconds":15,`

var scenarios = []scenario{
	{
		name: "rollout",
		fits: true,
		play: func(s *stage) {
			s.apply("Deployment", "web", "well", "by-hand", 3, "")
			s.kubectl("rollout", "status", "deployment/web")
			wait(2 * time.Second)
			s.kubectl("set", "image", "deployment/web", "app=shop/app:2")
			s.kubectl("rollout", "status", "deployment/web")
		},
		heads: []string{`\+ deploy/web +kubectl-client-side-apply`, `· deploy/web +rolled out DURATION: 3/3 ready +.*`,
			`~ deploy/web +kubectl-set`, `· deploy/web +rolled out DURATION: 3/3 ready, 3 pods replaced +.*`},
		check: func(s *stage, said string) {
			d := object[appsv1.Deployment](s, "deployment", "web")
			set := wrote(d.ObjectMeta, "kubectl-set")
			s.says(said, "rolled out "+between(set, progressing(d))+": 3/3 ready, 3 pods replaced")
			s.says(said, set.UTC().Format(time.RFC3339)+" ~ deploy/web")
		},
	},
	{
		name: "statefulset",
		play: func(s *stage) {
			s.apply("StatefulSet", "db", "well", "by-hand", 2, "")
			s.kubectl("rollout", "status", "statefulset/db")
			wait(2 * time.Second)
			s.kubectl("set", "image", "statefulset/db", "app=shop/app:2")
			s.kubectl("rollout", "status", "statefulset/db")
		},
		heads: []string{`\+ sts/db +kubectl-client-side-apply`, `· sts/db +rolled out DURATION: 2/2 ready +.*`,
			`~ sts/db +kubectl-set`, `· sts/db +rolled out DURATION: 2/2 ready, 2 pods replaced +.*`},
	},
	{
		name: "bad image",
		play: func(s *stage) {
			s.apply("Deployment", "web", "no-image", "by-hand", 2, deadline)
			s.until("stuck rollout", func() bool {
				return strings.Contains(s.kubectl("get", "deployment", "web", "-o", "yaml"), "ProgressDeadlineExceeded")
			})
		},
		heads: []string{`\+ deploy/web +kubectl-client-side-apply`,
			`· deploy/web +2 pods (?:ErrImagePull|ImagePullBackOff): back-off; ProgressDeadlineExceeded; rolling out: 2/2 updated, 0/2 ready +.*`},
		bad: "ProgressDeadlineExceeded",
	},
	{
		name: "crash loop",
		play: func(s *stage) {
			s.apply("Deployment", "web", "crash", "by-hand", 1, "")
			s.until("third restart", func() bool {
				pods, err := s.client.CoreV1().Pods(s.ns).List(s.Context(), metav1.ListOptions{})
				if err != nil {
					s.Fatal(err)
				}
				return len(pods.Items) == 1 && len(pods.Items[0].Status.ContainerStatuses) == 1 && pods.Items[0].Status.ContainerStatuses[0].RestartCount >= 3
			})
		},
		heads: []string{`\+ deploy/web +kubectl-client-side-apply`, `· deploy/web +rolled out DURATION: 1/1 ready +.*`,
			`· deploy/web +(?:1 pod CrashLoopBackOff: exit code 3; .*0/1 ready|1/1 ready again, .*; before that: 1 pod CrashLoopBackOff: exit code 3) +.*`},
		bad: "CrashLoopBackOff",
	},
	{
		name: "three hundred pods",
		late: true,
		play: func(s *stage) {
			s.kubectl("create", "deployment", "many", "--image=shop/app:1", "--replicas=1")
			s.kubectl("rollout", "status", "deployment/many")
			wait(2 * time.Second)
			s.kubectl("scale", "deployment/many", "--replicas=301")
			s.kubectl("rollout", "status", "deployment/many")
		},
		heads: []string{`\+ deploy/many +kubectl-create`, `· deploy/many +rolled out DURATION: 1/1 ready +.*`,
			`~ deploy/many +kubectl.*`, `· deploy/many +scaled 1 → 301 DURATION: 301/301 ready, 300 pods new +.*`},
	},
	{
		name: "job",
		play: func(s *stage) {
			s.kubectl("create", "job", "migrate", "--image=shop/app:1")
			s.kubectl("wait", "--for=condition=complete", "job/migrate", "--timeout=5m")
		},
		heads: []string{`\+ job/migrate +kubectl-create`, `· job/migrate +complete DURATION +.*`},
		check: func(s *stage, said string) {
			j := object[batchv1.Job](s, "job", "migrate")
			s.says(said, "complete "+between(j.Status.StartTime.Time, j.Status.CompletionTime.Time))
		},
	},
	{
		name: "cronjob", anyOrder: true,
		play: func(s *stage) {
			s.kubectl("create", "cronjob", "nightly", "--image=shop/app:1", "--schedule=* * * * *")
			s.until("run", func() bool {
				return strings.Contains(s.kubectl("get", "cronjob", "nightly", "-o", "yaml"), "lastSuccessfulTime")
			})
			s.kubectl("patch", "cronjob", "nightly", "-p", `{"spec":{"suspend":true}}`)
		},
		heads: []string{`\+ cj/nightly +kubectl-create`, `(?:~ cj/nightly +kubectl-patch|·   job/nightly-\d+ +complete DURATION +.*)`,
			`(?:~ cj/nightly +kubectl-patch|·   job/nightly-\d+ +complete DURATION +.*)`},
		check: func(s *stage, said string) {
			jobs, err := s.client.BatchV1().Jobs(s.ns).List(s.Context(), metav1.ListOptions{})
			if err != nil || len(jobs.Items) == 0 {
				s.Fatalf("%d jobs: %v", len(jobs.Items), err)
			}
			j := jobs.Items[0]
			s.says(said, "job/"+j.Name+" complete "+between(j.Status.StartTime.Time, j.Status.CompletionTime.Time))
		},
	},
	{
		name: "deleted workload",
		play: func(s *stage) {
			s.apply("Deployment", "web", "well", "by-hand", 2, "")
			s.kubectl("rollout", "status", "deployment/web")
			wait(2 * time.Second)
			s.kubectl("delete", "deployment", "web")
			s.until("end of its pods", func() bool { return s.kubectl("get", "pods", "-o", "name") == "" })
		},
		heads: []string{`\+ deploy/web +kubectl-client-side-apply`, `· deploy/web +rolled out DURATION: 2/2 ready +.*`,
			`- deploy/web +existed DURATION +\?`, `· deploy/web +2 pods gone +.*`},
	},
	{
		name: "drain",
		late: true,
		play: func(s *stage) { // a drain evicts the pods of all namespaces: only this one has the label
			s.kubectl("create", "deployment", "drained", "--image=shop/app:1", "--replicas=3")
			s.kubectl("rollout", "status", "deployment/drained")
			wait(2 * time.Second)
			node := s.kubectl("get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}")
			defer s.kubectl("uncordon", node)
			s.kubectl("drain", node, "--pod-selector=app=drained", "--ignore-daemonsets")
			s.kubectl("rollout", "status", "deployment/drained")
		},
		heads: []string{`\+ deploy/drained +kubectl-create`, `· deploy/drained +rolled out DURATION: 3/3 ready +.*`,
			`· deploy/drained +3/3 ready again.*, (?:[1-3] evicted from \S+ and replaced|[1-3] evicted from \S+, [1-3] pods? new(?:, [1-3] pods? terminating)?), by the drain of \S+ +.*`},
	},
	{
		name: "deleted namespace", anyOrder: true,
		play: func(s *stage) {
			s.apply("Deployment", "web", "well", "by-hand", 2, "")
			s.kubectl("create", "configmap", "settings", "--from-literal=a=1")
			s.kubectl("rollout", "status", "deployment/web")
			wait(2 * time.Second)
			s.kubectl("delete", "namespace", s.ns)
		},
		heads: []string{`\+ (?:deploy/web|cm/settings) .*`, `\+ (?:deploy/web|cm/settings) .*`, `· deploy/web +rolled out DURATION: 2/2 ready +.*`},
		rest:  `- cm/settings +existed DURATION .*|- deploy/web +existed DURATION .*|· deploy/web +2 pods gone .*|· deploy/web .*|-   rs/web\S+ .*|·   rs/web\S+ +\d pods? gone .*|·   pod/web\S+ +gone after .*`,
	},
	{
		name: "helm release", // as Helm writes it, except for its data
		play: func(s *stage) {
			revision := func(n int, status string) {
				name := fmt.Sprintf("sh.helm.release.v1.web.v%d", n)
				s.kubectl("create", "secret", "generic", name, "--type=helm.sh/release.v1", "--from-literal=release=H4sIAAAA-not-to-be-seen")
				s.kubectl("label", "secret", name, "owner=helm", "name=web", fmt.Sprintf("version=%d", n), "status="+status)
			}
			revision(1, "deployed")
			revision(2, "pending-upgrade")
			s.kubectl("label", "--overwrite", "secret", "sh.helm.release.v1.web.v1", "status=superseded")
			s.kubectl("label", "--overwrite", "secret", "sh.helm.release.v1.web.v2", "status=failed")
		},
		heads: []string{`\+ secret/sh.helm.release.v1.web.v1 .*`, `~ helm release web: v1 \(deployed\) .*`,
			`\+ secret/sh.helm.release.v1.web.v2 .*`, `~ helm release web: v1 → v2 \(pending-upgrade\) .*`,
			`~ helm release web: v1 \(superseded\) .*`, `~ helm release web: v1 → v2 \(failed\) .*`},
		bad: "v1 → v2 (failed)",
		check: func(s *stage, said string) {
			if strings.Contains(said, "not-to-be-seen") {
				s.Errorf("a secret value is shown:\n%s", said)
			}
		},
	},
	{
		name: "operator in a loop",
		play: func(s *stage) {
			s.kubectl("create", "configmap", "leader", "--from-literal=n=0")
			for i := range 30 {
				_, err := s.client.CoreV1().ConfigMaps(s.ns).Update(s.Context(), &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: "leader"}, Data: map[string]string{"n": fmt.Sprint(i + 1)}}, metav1.UpdateOptions{FieldManager: "operator"})
				if err != nil {
					s.Fatal(err)
				}
			}
		},
		heads: append([]string{`\+ cm/leader +kubectl-create`}, repeatedly(30, `~ cm/leader +operator`)...),
	},
	{
		name: "node not ready",
		play: func(s *stage) {
			s.apply("Deployment", "web", "well", "silent", 2, "")
			s.kubectl("rollout", "status", "deployment/web")
			s.until("unready pods", func() bool {
				d := object[appsv1.Deployment](s, "deployment", "web")
				return d.Status.ReadyReplicas == 0
			})
		},
		heads: []string{`\+ deploy/web +kubectl-client-side-apply`, `· deploy/web +rolled out DURATION: 2/2 ready +.*`,
			`· deploy/web +2 pods NotReady: although its containers are ready; 2/2 → 0/2 ready, node silent NodeStatusUnknown +.*`},
		bad: "2 pods NotReady",
	},
}

func repeatedly(n int, s string) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = s
	}
	return all
}

func (s *stage) says(said, want string) {
	s.Helper()
	if !strings.Contains(squeezed(said), want) {
		s.Errorf("no %q in:\n%s", want, said)
	}
}

// TestScenarios plays typical courses of events while a daemon records. The output of tattler log is compared
// line by line, and its times, durations and causes with the cluster's objects; it is also rendered on three
// screens.
func TestScenarios(t *testing.T) {
	t.Parallel()
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	client := kubernetes.NewForConfigOrDie(cfg)
	startKubelet(t, client, "by-hand", false)
	startKubelet(t, client, "silent", true)
	w := startObserver(t, cluster)
	journal := filepath.Join(t.TempDir(), "journal.db")
	daemon := start(t, cluster, "run", "deploy,rs,sts,controllerrevisions.apps,po,job,cj,cm,secrets,no", "-A", "--journal", journal)
	daemon.wait(t, daemon.err, "msg=recording")
	var playing sync.WaitGroup
	stages := make([]*stage, len(scenarios))
	for i, sc := range scenarios {
		s := &stage{t, client, fmt.Sprintf("scenario%d-%d", os.Getpid(), namespaces.Add(1))}
		stages[i] = s
		if out, err := runKubectl("", cluster.Kubeconfig(), "create", "namespace", s.ns); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _, _ = runKubectl("", cluster.Kubeconfig(), "delete", "namespace", s.ns, "--wait=false") })
		if !sc.late {
			playing.Go(func() { sc.play(s) })
		}
	}
	playing.Wait()
	for i, sc := range scenarios {
		if sc.late && !t.Failed() {
			sc.play(stages[i])
		}
	}
	if t.Failed() {
		return
	}
	wait(5 * time.Second) // folded changes wait until their object is quiet
	daemon.interrupt(t)
	w.confirmAbsences(t, journal)
	if out, err := exec.Command(tattler(t), "journal", "verify", "--stories", "--journal", journal).CombinedOutput(); err != nil {
		t.Errorf("the recorded stories: %v\n%s", err, out)
	}
	for i, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			s := stages[i]
			s.T = t
			said := absences.ReplaceAllString(s.log(journal), "")
			sc.compare(s, said)
			if sc.check != nil {
				sc.check(s, said)
			}
			(&truth{t, w, s.ns}).check(said)
			screens := screensOf(t, cluster.Kubeconfig(), "log", "-n", s.ns, "--limit", "0", "--journal", journal)
			for width, screen := range screens {
				screen = absences.ReplaceAllString(screen, "")
				screens[width] = screen
				if sc.bad != "" && !strings.Contains(screen, sc.bad) {
					t.Errorf("no %s at %d columns:\n%s", sc.bad, width, screen)
				}
				if all := strings.Join(stories(screen, s.ns, false), ""); sc.fits {
					_, rollout, _ := strings.Cut(all, "HH:MM:SS ~ ")
					if strings.Count(all, "\n") > rows || strings.Contains(rollout, "…") {
						t.Errorf("does not fit a screen of %d columns and %d rows:\n%s", width, rows, screen)
					}
				}
			}
			golden(t, sc.name, s.ns, screens, goldenOptions{keep: len(sc.heads), anyOrder: sc.anyOrder})
		})
	}
}

// maxRest bounds the further lines of a scenario.
const maxRest = 6

// compare compares the heads of lines.
func (sc *scenario) compare(s *stage, said string) {
	const duration = `(?:within 1 s|in \d+ (?:s|min|min \d+ s)|\d+ (?:s|min|min \d+ s))`
	head := regexp.MustCompile(`^\d{4}-\S+ `)
	var heads []string
	for line := range strings.Lines(said) {
		if at := head.FindString(line); at != "" && !strings.Contains(line, " cm/kube-root-ca.crt ") {
			if line = late.ReplaceAllString(strings.TrimSuffix(line[len(at):], "\n"), ""); !slowly.MatchString(line) {
				heads = append(heads, line)
			}
		}
	}
	if len(heads) < len(sc.heads) || len(heads) > len(sc.heads)+maxRest {
		s.Errorf("%d lines, want %d and at most %d more", len(heads), len(sc.heads), maxRest)
	}
	for i, line := range heads {
		want := sc.rest
		if i < len(sc.heads) {
			want = sc.heads[i]
		}
		want = "^(?:" + strings.ReplaceAll(want, "DURATION", duration) + ")$"
		if !regexp.MustCompile(want).MatchString(line) {
			s.Errorf("line %d does not match %s", i+1, want)
		}
	}
	if s.Failed() {
		s.Logf("%s", said)
	}
}

func (s *stage) log(journal string) string {
	s.Helper()
	cmd := exec.Command(tattler(s.T), "log", "-n", s.ns, "--limit", "0", "--journal", journal)
	cmd.Env = append(os.Environ(), "TZ=UTC")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// absences matches the lines that report that the API server was away. confirmAbsences checks them; they do not
// belong to a scenario.
var absences = regexp.MustCompile(`(?m)^\S+ +! .*\n`)

// confirmAbsences checks that the API server answered the observer late, too, about when the journal says that it was away.
// No scenario stops it, but a busy machine may stop it, or the daemon, for as long. The observer asks twice a second.
func (w *observer) confirmAbsences(t *testing.T, journal string) {
	t.Helper()
	out, err := exec.Command(tattler(t), "log", "--op", "absent", "--limit", "0", "-o", "json", "--journal", journal).Output()
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.Lines(string(out)) {
		var e seenEvent
		if err := json.Unmarshal([]byte(text), &e); err != nil || e.Data.Observed.After == nil {
			t.Fatalf("%v: %s", err, text)
		}
		from, to := *e.Data.Observed.After, e.Data.Observed.At
		const around = 30 * time.Second
		silence := w.silence(from.Add(-around), to.Add(around))
		if silence < time.Second {
			t.Errorf("the API server was not away: it answered at least every %v about %v to %v: %s", silence, from, to, text)
		}
		t.Logf("this machine is slow: the API server did not answer for %v", silence)
	}
}
